"""Files by URL, from real servers on this machine where DuckDB has its extension, and what is said where it has not."""

import gzip
import os
import shutil
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet
from chart_folder import SONGS, write_charts
from command_line import process
from discreet.errors import InvalidValueError, MissingExtraError, quote, redact_url
from discreet.publish.chart_source import find_table, list_public_options
from discreet.publish.charts_file import read_charts
from discreet.sources.events.dialects.duckdb import connect_in_memory
from discreet.sources.events.location import FilePath, Location, fetch_text_file
from discreet.sources.events.provenance import origin_of

ROWS = [(f"u{i}", "a" if i % 3 else "b") for i in range(30)]
SECRET = "hunter2"  # noqa: S105  # of no server


class _Files(BaseHTTPRequestHandler):
    """Files of a folder over HTTP, in ranges, and the list of a bucket as S3 has it."""

    def __init__(self, *args, folder, **options):
        self.folder = folder
        super().__init__(*args, **options)

    def do_HEAD(self):
        self._answer(has_body=False)

    def do_GET(self):
        self._answer(has_body=True)

    def _answer(self, has_body):
        asked = urlsplit(self.path)
        if "list-type" in parse_qs(asked.query):
            return self._send(200, self._list_bucket(parse_qs(asked.query)), has_body)
        path = self.folder / os.path.basename(unquote(asked.path))
        if not path.is_file():
            return self._send(404, b"", has_body)
        body, wanted = path.read_bytes(), self.headers.get("Range")
        if wanted is None:
            return self._send(200, body, has_body)
        first, last = wanted.removeprefix("bytes=").split("-")
        part = body[int(first) : int(last or len(body)) + 1]
        span = f"bytes {first}-{int(first) + len(part) - 1}/{len(body)}"
        return self._send(206, part, has_body, {"Content-Range": span})

    def _list_bucket(self, query):
        names = sorted(each.name for each in self.folder.iterdir() if each.is_file())
        keys = "".join(f"<Contents><Key>{name}</Key><Size>1</Size></Contents>" for name in names)
        return f"<ListBucketResult><IsTruncated>false</IsTruncated>{keys}</ListBucketResult>".encode()

    def _send(self, code, body, has_body, headers=None):
        self.send_response(code)
        for name, value in {"Content-Length": len(body), "Accept-Ranges": "bytes", **(headers or {})}.items():
            self.send_header(name, str(value))
        self.end_headers()
        if has_body:
            self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "files"
    folder.mkdir()
    text = "who;what\n" + "".join(f"{who};{what}\n" for who, what in ROWS)
    (folder / "e.csv").write_text(text)
    (folder / "e.csv.gz").write_bytes(gzip.compress(text.encode()))
    with pa.output_stream(str(folder / "e.csv.zst"), compression="zstd") as stream:
        stream.write(text.encode())
    (folder / "e.jsonl").write_text("".join(f'{{"who": "{who}", "what": "{what}"}}\n' for who, what in ROWS))
    pq.write_table(
        pa.table({"who": [who for who, _ in ROWS], "what": [what for _, what in ROWS]}), folder / "e.parquet"
    )
    (folder / "items.csv").write_text("id,name\na,Alpha\nb,Beta\n")
    (folder / "latin.csv").write_bytes("who,wh\xe4t\nu1,a\n".encode("latin-1"))
    return folder


@pytest.fixture
def server(folder):
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Files, folder=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture
def extension():
    """The file of the extension, where it is installed."""
    query = "SELECT install_path FROM duckdb_extensions() WHERE extension_name = 'httpfs' AND installed"
    found = duckdb.connect().execute(query).fetchone()
    if found is None:
        pytest.skip("DuckDB has no extension httpfs on this machine: INSTALL httpfs")
    return found[0]


@pytest.fixture
def no_extension(tmp_path, monkeypatch):
    """A home without extensions of DuckDB's."""
    monkeypatch.setenv("HOME", str(tmp_path))


def best_of(table, **options):
    source = discreet.events(table, user="who", item="what", **{"domain": ["a", "b"], **options})
    return discreet.top_k(source, k=1, epsilon=100, counts=100).counts


@pytest.mark.parametrize("name", ["e.csv", "e.csv.gz", "e.csv.zst", "e.jsonl", "e.parquet"])
def test_files_are_read_from_a_server_with_a_signature_in_their_urls(extension, server, name):
    url, items = f"http://{server}/{name}?X-Signature={SECRET}", f"http://{server}/items.csv:id?X-Signature={SECRET}"
    grouped = {"by": "what", "groups": items, "each_user": "one"}
    source = discreet.events(url, user="who", item="what", domain=["a", "b"], **grouped)
    assert list(discreet.top_k(source, k=1, epsilon=100)) == ["a", "b"]
    assert best_of(url) == [discreet.Count("a", 20, 20, 20)]
    assert best_of([url, f"http://{server}/{name}"], domain=items, label="name") == [
        discreet.Count("Alpha", 20, 20, 20)
    ]


def test_the_header_of_a_file_by_url_is_read_as_one_that_is_here(extension, server):
    with pytest.raises(InvalidValueError, match="header in utf-8, and does not: say its encoding"):
        best_of(f"http://{server}/latin.csv")
    source = discreet.events(f"http://{server}/latin.csv", user="who", item="wh\xe4t", domain=["a"], encoding="latin-1")
    assert source.tally().exact(0) == 1


@pytest.mark.parametrize("name", ["e.csv", "e.csv.gz", "e.jsonl"])
def test_a_text_file_is_fetched_as_it_is_into_a_folder_that_goes(folder, name):
    """A file on this machine is fetched as one by URL is, by the same statement of DuckDB's."""
    connection, close = connect_in_memory()
    copy = Path(fetch_text_file(connection, FilePath(str(folder / name))).text)
    assert copy.read_bytes() == (folder / name).read_bytes()
    assert copy.suffix == (folder / name).suffix
    assert copy.parent.stat().st_mode & 0o777 == 0o700
    close()
    assert not copy.exists()


@pytest.mark.parametrize(
    ("one", "other", "meets"),
    [
        ("s3://b/*.csv", "s3://b/jan.csv", True),
        ("s3://b/*.csv", "s3://c/jan.csv", False),
        ("https://H:443/./a/e.csv?sig=1", "https://ann:pw@h/a/e.csv", True),
        ("https://h/e.csv", "https://h/f.csv", False),
        ("https://ann:p/w@h/e.csv", "https://ann:p/w@g/f.csv", False),
    ],
)
def test_one_file_by_two_urls_is_recognised(one, other, meets):
    first, second = (origin_of(Location.parse_list(each, "domain")) for each in (one, other))
    assert first.meets(second) == meets
    assert second.meets(first) == meets


def test_a_server_that_has_no_such_file_is_named_without_what_is_secret(extension, server):
    with pytest.raises(discreet.EngineError) as caught:
        best_of(f"http://ann:{SECRET}@{server}/gone.csv?X-Signature={SECRET}")
    assert SECRET not in str(caught.value)
    assert "opening 'http://127.0" in str(caught.value)


def test_a_pattern_stands_for_files_of_a_bucket(extension, server, tmp_path, monkeypatch):
    home = tmp_path / "home"
    kept = home / ".duckdb" / "extensions" / extension.partition("/extensions/")[2]
    kept.parent.mkdir(parents=True)
    shutil.copy(extension, kept)
    monkeypatch.setenv("HOME", str(home))
    connection = duckdb.connect()
    connection.execute("LOAD httpfs")
    connection.execute(
        f"CREATE PERSISTENT SECRET (TYPE s3, KEY_ID 'ann', SECRET '{SECRET}', ENDPOINT '{server}', URL_STYLE 'path', "
        "USE_SSL false, REGION 'nowhere')"
    )
    assert best_of("s3://bucket/e.csv") == best_of("s3://bucket/e*.csv") == [discreet.Count("a", 20, 20, 20)]
    with pytest.raises(InvalidValueError, match=r"'s3://bucket/none-\*\.csv' must be files that exist"):
        best_of("s3://bucket/none-*.csv")


@pytest.mark.parametrize("url", ["https://example.org/e.csv", "s3://bucket/e.parquet", "gs://bucket/*.jsonl"])
def test_without_the_extension_it_is_said_how_to_install_it_and_nothing_is_fetched(no_extension, url):
    with pytest.raises(MissingExtraError, match="never installed by discreet: run INSTALL httpfs once in Duck"):
        best_of(url)
    with pytest.raises(MissingExtraError, match="INSTALL httpfs"):
        discreet.events(pa.table({"who": ["u"], "what": ["a"]}), user="who", item="what", domain=f"{url}:what")


def test_no_connection_installs_or_loads_an_extension_by_itself(tmp_path):
    from discreet.sources.events.dialects.duckdb import connect_in_memory, connect_to_file

    duckdb.connect(str(tmp_path / "events.db")).close()
    for backend, close in (connect_in_memory(), connect_to_file(f"duckdb://{tmp_path / 'events.db'}")):
        asked = "SELECT current_setting('autoinstall_known_extensions'), current_setting('autoload_known_extensions')"
        assert backend.con.execute(asked).fetchone() == (False, False)
        close()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("https://example.org/data.json?X={}", "must be a URL that ends in one of .parquet, .csv, .tsv, .jsonl, .ndj"),
        ("https://ann:{}@example.org/data", "must be a URL that ends in one of"),
        ("https://ann:x/{}@example.org/data", "not 'https://...'"),
        ("https://example.org/day-*.csv?X={}", "s3:// and gs:// have those"),
    ],
)
def test_a_url_that_is_no_file_is_refused_without_what_is_secret(url, message):
    with pytest.raises(InvalidValueError) as caught:
        best_of(url.format(SECRET))
    assert message in str(caught.value)
    assert SECRET not in str(caught.value)


def test_a_file_by_url_is_not_its_own_domain():
    with pytest.raises(InvalidValueError, match="not the events themselves"):
        best_of("https://example.org/e.csv?X=1", domain="https://example.org/e.csv?X=2:what")


def split_column(text):
    location = Location.parse_list(text, "groups")
    return location.paths[0].text, location.column


def test_the_column_of_a_url_stands_after_its_last_colon():
    assert split_column("https://h:80/e.csv") == ("https://h:80/e.csv", None)
    assert split_column("https://h:80/e.csv:title of it?s=1") == ("https://h:80/e.csv?s=1", "title of it")
    assert split_column("https://h/e.csv?s=ab:SECRET") == ("https://h/e.csv?s=ab:SECRET", None)
    assert split_column("s3://bucket/e.csv") == ("s3://bucket/e.csv", None)
    signed = "https://h/e.csv?se=2026-01-01T00:00:00Z&sig=ab"
    assert split_column(signed) == (signed, None)
    assert split_column(signed.replace("?", ":id?")) == (signed, "id")


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("https://h:80/e.csv", "https://h:80/e.csv"),
        ("https://ann:pw@h:80/e.csv?a=b#c", "https://h:80/e.csv"),
        ("https://ann:p?w@h/e.csv", "https://..."),
        ("https://ann:p#w@h/e.csv", "https://..."),
        ("https://h/e.csv?mail=ann@h", "https://..."),
        ("data/e?.csv", "data/e?.csv"),
        ("C:/data/e.csv", "C:/data/e.csv"),
        ("duckdb:///srv/e.db", "duckdb:///srv/e.db"),
        (f" HTTPS:/ann:{SECRET}@h/e.csv", "HTTPS:/h/e.csv"),
        (f"S3://b/e.csv?sig={SECRET}", "S3://b/e.csv"),
    ],
)
def test_what_may_be_secret_is_left_out(url, told):
    assert redact_url(url) == told
    for given in (url, [url], (url,), Path(url)):
        assert SECRET not in quote(given)


@pytest.mark.parametrize("begin", ["HTTPS://", "S3://", " https://", "http:/", "POSTGRES://", "postgresql://"])
def test_no_error_has_a_secret(begin, tmp_path):
    url = f"{begin}ann:{SECRET}@h/e.csv"
    for given in (url, [url], Path(url)):
        with pytest.raises(discreet.Error) as caught:
            discreet.events(given, user="who", item="what", domain=["a"])
        assert SECRET not in str(caught.value)
    with pytest.raises(discreet.Error) as caught:
        discreet.events(pa.table({"who": [1], "what": ["a"]}), user="who", item="what", domain=url)
    assert SECRET not in str(caught.value)


def test_the_command_line_takes_urls_of_events_alone(no_extension):
    options = ["--user", "who", "--item", "what", "-k", "1", "--epsilon", "1"]
    url = f"https://ann:{SECRET}@example.org/e.csv?X={SECRET}"
    for files, says in (
        ([url, *options, "--domain", "integers:0:9"], "INSTALL httpfs"),
        ([url, "-k", "1", "--epsilon", "1"], "a URL is read as events, with --user"),
        (["postgres://ann@h/db", *options, "--domain", "integers:0:9"], "the URL of a database goes with --connect"),
    ):
        done = process("select", *files)
        assert done.returncode == 2
        assert says in done.stderr
        assert SECRET not in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_a_charts_file_may_have_urls(tmp_path):
    charts = SONGS.replace("streams/*.parquet", "s3://bucket/streams/*.parquet")
    charts = charts.replace('"songs.csv:song_id"', '"https://example.org/songs.csv?v=2:song_id"')
    write_charts(tmp_path, charts)
    (chart,) = read_charts(tmp_path / "charts.toml").charts
    assert find_table(chart) == "s3://bucket/streams/*.parquet"
    domain = list_public_options(chart)["domain"]
    assert domain == Location.parse_list("https://example.org/songs.csv?v=2:song_id", "domain")
