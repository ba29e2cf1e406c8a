/* A page that is opened from the disk may not start a worker, and the search of the site is one. Here the worker's script
   runs in a hidden frame instead. Its name is what Zensical looks for before it takes one from another host. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.append(frame)
      const inside = frame.contentWindow
      inside.postMessage = data => {
        const event = new MessageEvent("message", {data})
        this.dispatchEvent(event)
        this.onmessage?.(event)
      }
      const script = inside.document.createElement("script")
      this.ready = new Promise(resolve => script.addEventListener("load", resolve))
      this.inside = inside
      script.src = url
      inside.document.body.append(script)
    }
    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", {data})))
    }
    terminate() {
      this.inside.frameElement?.remove()
    }
  }
}
