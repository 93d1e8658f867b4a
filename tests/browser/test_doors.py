"""No foreign page in the operator's browser reads from a Prefect server that nacre starts, or writes there."""

import http.server
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from benchmarks.postgres import free_port
from flows.with_prefect.credential import credential
from flows.with_prefect.server import PrefectServer
from tests.kit.api import Api, wait_until
from tests.kit.browsers import REBOUND, Browser

pytestmark = pytest.mark.processes

ATTACK = """
const [api, write, done] = arguments;
const open = [], wait = new Promise(end => setTimeout(end, 20000, 'no answer'));
const json = {'Content-Type': 'application/json'};
const variable = name => JSON.stringify({name, value: 'theirs'});
const post = (path, body, how) => fetch(api + path, {method: 'POST', body, ...how});
const socket = (path, protocols, first) => new Promise((end, fail) => {
  const line = new WebSocket(api.replace('http', 'ws') + path, protocols);
  line.onopen = () => { line.send(JSON.stringify(first)); protocols.length || end(); };
  line.onmessage = message => message.data.includes('auth_success') ? end() : fail();
  line.onclose = line.onerror = fail;
});
const form = (path, body, kind) => new Promise(end => {
  const frame = document.createElement('iframe'), sheet = document.createElement('form');
  [frame.name, sheet.target, sheet.method, sheet.enctype, sheet.action] = [path, path, 'POST', kind, api + path];
  const field = document.createElement('input');
  [field.name, field.value] = [body.slice(0, -1) + ', "x": "', '"}'];
  sheet.append(field);
  document.body.append(frame, sheet);
  frame.onload = end;
  sheet.submit();
});
const read = async answer => { if (!(await answer).ok) throw 0; await (await answer).text(); };
const ways = {
  'reads by GET': () => read(fetch(api + '/admin/settings')),
  'reads by POST': () => read(post('/deployments/filter', '{}', {headers: json})),
  'reads the health': () => read(fetch(api + '/health')),
  'reads with credentials': () => read(fetch(api + '/admin/settings', {credentials: 'include'})),
  'loads a picture': () => new Promise((end, fail) => Object.assign(new Image(),
    {onload: end, onerror: fail, src: api.replace('/api', '/v2/ico/favicon-32x32.png')})),
  'hears events': () => socket('/events/out', ['prefect'], {type: 'auth', token: null}),
  'tells events': () => socket('/events/in', [], {event: 'theirs'}),
};
const writes = [
  () => post('/variables/', variable('cors'), {headers: json}),
  () => post('/variables/', variable('plain'), {mode: 'no-cors'}),
  () => post('/variables/', new Blob([variable('untyped')]), {mode: 'no-cors'}),
  () => post('/variables/', new Blob([variable('kept')]), {mode: 'no-cors', keepalive: true, credentials: 'include'}),
  () => navigator.sendBeacon(api + '/variables/', new Blob([variable('beacon')])),
  () => form('/variables/', variable('form'), 'text/plain'),
];
(async () => {
  for (const [name, way] of Object.entries(ways))
    try { if (await Promise.race([way(), wait]) !== 'no answer') open.push(name); } catch {}
  for (const one of write ? writes : []) try { await Promise.race([one(), wait]); } catch {}
  done(open);
})();
"""


@contextmanager
def foreign_page() -> Iterator[int]:
    """Serve an empty page on a port of its own."""

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<title>foreign</title><body>")

        def log_message(self, *_: object) -> None: ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Share one home: a fresh database is slow to make."""
    return tmp_path_factory.mktemp("doors")


@pytest.fixture(scope="module", params=["nacre serve", "one run"])
def api(request: pytest.FixtureRequest, home: Path) -> Iterator[Api]:
    """Run the server of `nacre serve`, or that of one run; it is asked with the string that it wants."""
    with PrefectServer(home, port=free_port() if request.param == "nacre serve" else 0) as server:
        server.wait()
        yield Api(server.url, os.environ.get("PREFECT_API_AUTH_STRING", ""))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", REBOUND])
@pytest.mark.nightly_if("one run-*")  # beside the server that lasts
def test_a_foreign_page_neither_reads_nor_writes(browser: Browser, api: Api, host: str) -> None:
    with foreign_page() as port:
        browser.driver.get(f"http://{host}:{port}/")
        assert browser.driver.title == "foreign"
        assert browser.driver.execute_async_script(ATTACK, api.url, True) == []
        browser.run(f"document.body.innerHTML = '<iframe src={api.url}/health>'")
        browser.driver.switch_to.frame(0)
        assert "true" not in browser.run("return document.body.textContent")
    assert [one["name"] for one in api.ask("variables/filter", {})] == []


@pytest.mark.parametrize("host", [REBOUND, "localhost"])
def test_a_name_that_leads_here_opens_nothing(browser: Browser, api: Api, host: str) -> None:
    elsewhere = api.url.replace("127.0.0.1", host)
    browser.driver.get(f"{elsewhere}/health")
    assert "open http://127.0.0.1:" in browser.run("return document.body.textContent")
    assert browser.driver.execute_async_script(ATTACK, elsewhere, False) == []


def test_the_operator_types_the_string_in_once_and_sees_deployments_and_runs(
    browser: Browser, home: Path, api: Api
) -> None:
    if api.credential != credential(home):
        pytest.skip("the server of one run has no UI")
    from prefect import flow, task

    @flow(name="doors")
    def doors() -> None:
        task(lambda: None, name="a-door")()

    doors()
    (run,) = api.ask("flow_runs/filter", {})
    api.ask("deployments/", {"name": "nightly", "flow_id": run["flow_id"]})
    browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.driver.set_window_size(1200, 900)
    for kind in ("browser", "performance"):
        browser.driver.get_log(kind)

    def shows(text: str) -> None:
        wait_until(lambda: text in browser.run("return document.body.textContent"), 60)

    origin = api.url.removesuffix("/api")
    browser.driver.get(origin)
    wait_until(lambda: "/login" in browser.driver.current_url, 60)
    shows("Login")
    (field,) = browser.driver.find_elements("css selector", "input[type=password]")
    field.send_keys(credential(home), "\n")
    wait_until(lambda: "/login" not in browser.driver.current_url, 60)
    for page, text in ("deployments", "nightly"), (f"runs/flow-run/{run['id']}", run["name"]):
        browser.driver.get(f"{origin}/v2/{page}")
        shows(text)
    wait_until(lambda: browser.run("return document.querySelectorAll('canvas').length"), 60)  # the graph of the run
    assert {urlsplit(url).netloc for url in browser.requests()} <= {urlsplit(origin).netloc, ""}
    blocked = [each for each in browser.complaints() if "Content Security Policy" in each]
    assert [each for each in blocked if "amplitude.com" not in each] == []
    assert credential(home) not in str(browser.run("return [...performance.getEntries()].map(entry => entry.name)"))
