"""Runs every harness for its share of the given seconds, one after the other, and prints what came of it.

    python -m fuzz.run SECONDS

The parsers are fuzzed under the guidance of coverage by atheris, the properties of tests/test_properties.py are drawn
by Hypothesis with new random choices each time. Inputs that break the contract are kept in fuzz/found/, one of each
kind, and the exit code is 1 if there are any.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import importlib.util
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NoReturn

PARSERS = ("rationals", "sensitivities", "domains", "conditions")
PROPERTIES = ("top_k", "events", "neighbours", "release text", "command line")
ROOT = Path(__file__).resolve().parent.parent
FOUND = ROOT / "fuzz" / "found"
SLOWEST = 60
"""Seconds after which one input counts as a hang."""
LONGEST = 100
"""Bytes of an accepted input that is worth changing further; longer ones are mostly comments."""


@dataclass
class Report:
    """What one target did: inputs executed, how many were accepted, seconds, and the kinds of findings."""

    target: str
    inputs: int = 0
    accepted: int = 0
    seconds: float = 0.0
    kinds: list[str] = field(default_factory=list)

    def found(self, kind: str, data: bytes, story: str) -> None:
        """Keep an input that broke the contract, if it is the shortest of its kind."""
        name = FOUND / f"{self.target.replace(' ', '-')}-{hashlib.sha256(kind.encode()).hexdigest()[:8]}"
        if kind not in self.kinds:
            self.kinds.append(kind)
        elif name.with_suffix(".input").stat().st_size <= len(data):
            return
        FOUND.mkdir(exist_ok=True)
        name.with_suffix(".input").write_bytes(data)
        name.with_suffix(".txt").write_text(story, encoding="utf-8", errors="backslashreplace")


def main() -> int:
    """Read the arguments; the parent starts one process a target, because atheris ends the process it runs in."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("seconds", type=float, nargs="?", default=60)
    parser.add_argument("--target", choices=[*PARSERS, *PROPERTIES], help="this one alone, in this process")
    parser.add_argument("--report", type=Path, help="where that process leaves its report")
    given = parser.parse_args()
    if given.target is not None:
        run = _fuzz if given.target in PARSERS else _draw
        return run(given.target, given.seconds, given.report)
    return _run_all(given.seconds)


def _run_all(seconds: float) -> int:
    parsers: tuple[str, ...] = PARSERS
    if importlib.util.find_spec("atheris") is None:
        print(f"atheris is not there for Python {sys.version_info[0]}.{sys.version_info[1]}: Hypothesis alone is run")
        parsers = ()
    targets = [*parsers, *PROPERTIES]
    reports = []
    for target in targets:
        print(f"{target} ...", flush=True)
        reports.append(_in_a_process(target, seconds / len(targets)))
    print(f"\n{'target':<16}{'inputs':>9}{'accepted':>10}{'a second':>10}{'crashes':>9}")
    for each in reports:
        rate = each.inputs / each.seconds if each.seconds else 0
        print(f"{each.target:<16}{each.inputs:>9,}{each.accepted:>10,}{rate:>10,.0f}{len(each.kinds):>9}")
    crashes = [f"{each.target}: {kind}" for each in reports for kind in each.kinds]
    for line in crashes:
        print(f"FOUND in {line}"[:300])
    if crashes:
        print(f"the inputs are in {FOUND.relative_to(ROOT)}/")
    return 1 if crashes else 0


def _in_a_process(target: str, seconds: float) -> Report:
    """Run one target; a process that dies without its report is a finding too."""
    with tempfile.TemporaryDirectory(prefix="discreet-fuzz-") as scratch:
        written = Path(scratch) / "report.json"
        arguments = [str(seconds), "--target", target, "--report", str(written)]
        paths = map(str, (ROOT, ROOT / "tests", ROOT / "tests" / "helpers"))
        environment = os.environ | {"TMPDIR": scratch, "PYTHONPATH": os.pathsep.join(paths)}
        environment.pop("DISCREET_DEBUG", None)
        program = [sys.executable, "-m", "fuzz.run", *arguments]
        code, log = _ended(program, environment, seconds + 3 * SLOWEST)
        report = Report(**json.loads(written.read_text())) if written.exists() else Report(target)
        if code:
            saved = [each.read_bytes() for each in Path(scratch).glob("died-*")]
            report.found(f"the process ended with {code}", saved[0] if saved else b"", log[-20_000:])
        return report


def _ended(program: list[str], environment: dict[str, str], limit: float) -> tuple[int | str, str]:
    """How a process ended, 0 if all is well, and what it said."""
    output: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    try:
        ended = subprocess.run(program, cwd=ROOT, env=environment, timeout=limit, check=False, **output)
    except subprocess.TimeoutExpired as late:
        return "no end in sight", (late.stdout or b"").decode(errors="replace")
    return ended.returncode, ended.stdout.decode(errors="replace")


def _fuzz(target: str, seconds: float, report_to: Path | None) -> int:
    """Fuzzes a parser under the guidance of coverage, and never returns: atheris ends the process."""
    import atheris

    with atheris.instrument_imports(include=["discreet"]):
        harness = importlib.import_module(f"fuzz.{target}")
        contract = importlib.import_module("fuzz.contract")
    warnings.simplefilter("error")
    report, clock = Report(target), _Clock(seconds)
    rng = random.Random()

    def one(data: bytes) -> None:
        if clock.is_over():
            _leave(report, clock, report_to)
        report.inputs += 1
        try:
            if harness.check_bytes(data):
                report.accepted += 1
                if len(data) <= LONGEST:
                    accepted[rng.randrange(len(accepted))] = data
        except Exception as error:
            report.found(_kind(error), data, traceback.format_exc())

    def mutate(data: bytes, most: int, seed: int) -> bytes:
        # Coverage keeps what is refused in a new way; half of the time something accepted is changed instead.
        data = rng.choice(accepted) if rng.random() < 0.5 else data
        if rng.random() < 0.2:
            return bytes(atheris.Mutate(data, most))
        text = contract.mutated(contract.as_text(data), harness.WORDS, harness.SEEDS, rng)
        changed: bytes = contract.as_bytes(text)[:most]
        return changed

    corpus = contract.folder() / "seeds"
    corpus.mkdir()
    accepted = [contract.as_bytes(seed) for seed in harness.SEEDS] * 5
    for n, seed in enumerate(accepted):
        (corpus / str(n)).write_bytes(seed)
    options = [
        f"-artifact_prefix={tempfile.gettempdir()}/died-",
        f"-timeout={SLOWEST}",
        "-rss_limit_mb=4096",
        "-max_len=400",
    ]
    clock.start()
    atheris.Setup([sys.argv[0], *options, str(corpus)], one, custom_mutator=mutate)
    atheris.Fuzz()
    return 1


def _told(example: object) -> str:
    """Return an example as text; Python refuses to print whole numbers of more than 4,300 digits."""
    try:
        return repr(example)
    except ValueError:
        return "an example with a number too long to print"


def _draw(target: str, seconds: float, report_to: Path | None) -> int:
    """Draws examples of a property until the time is over; Hypothesis shrinks what it finds."""
    from hypothesis import HealthCheck, Verbosity, given, settings

    module = importlib.import_module("test_properties")
    strategy, check = module.PROPERTIES[target]
    warnings.simplefilter("error")
    report, clock = Report(target), _Clock(seconds)

    def one(example: Any) -> None:
        if clock.is_over():
            _leave(report, clock, report_to)
        report.inputs += 1
        if report_to is not None:
            # For the parent to find if this input is the end of the process.
            report_to.with_name("died-of").write_text(_told(example), encoding="utf-8", errors="backslashreplace")
        try:
            report.accepted += bool(check(example))
        except Exception as error:
            # Kept at once: the time may be over before Hypothesis has made it small.
            report.found(_kind(error), _told(example).encode(errors="backslashreplace"), traceback.format_exc())
            raise

    batch = settings(
        max_examples=1000, deadline=None, derandomize=False, database=None, verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck), report_multiple_bugs=False,
    )  # fmt: skip
    clock.start()
    while not clock.is_over():
        try:
            batch(given(example=strategy)(one))()
        except Exception:
            if not report.kinds:
                raise  # not a finding but a mistake in the strategy
    _leave(report, clock, report_to)


class _Clock:
    """The time that a target has."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.started = time.monotonic()

    def start(self) -> None:
        """Start the count anew, once everything is imported."""
        self.started = time.monotonic()

    def passed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.started

    def is_over(self) -> bool:
        """Whether all the time is used."""
        return self.passed() >= self.seconds


def _leave(report: Report, clock: _Clock, report_to: Path | None) -> NoReturn:
    """End the process from within a fuzzer that would go on."""
    report.seconds = clock.passed()
    text = json.dumps(asdict(report), indent=2)
    if report_to is None:
        print(text, flush=True)
    else:
        report_to.write_text(text)
    # Nothing that is registered for the end of a process is run by this.
    shutil.rmtree(importlib.import_module("fuzz.contract").folder(), ignore_errors=True)
    os._exit(0)


def _kind(error: BaseException) -> str:
    """Return a finding without the parts that differ from input to input: quoted parts and numbers."""
    message = str(error).partition("\n")[0]
    message = re.sub(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|\[.*\]|\{.*\}|\(.*\)|-?\d+(\.\d+)?", "_", message)
    frames = [f"{Path(frame.filename).name}:{frame.name}" for frame in traceback.extract_tb(error.__traceback__)]
    cause = error.__cause__
    inner = "" if cause is None else f" from {type(cause).__name__} in {_place(cause)}"
    return f"{type(error).__name__} at {frames[-1] if frames else 'an unknown place'}: {message[:120]}{inner}"


def _place(error: BaseException) -> str:
    """Return the innermost function of discreet that an error went through."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f"{Path(frame.filename).name}:{frame.name}" for frame in frames if "discreet" in Path(frame.filename).parts]
    return own[-1] if own else "another library"


if __name__ == "__main__":
    sys.exit(main())
