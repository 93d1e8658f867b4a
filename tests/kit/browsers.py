"""A headless Chromium, and the pages it is led to."""

import base64
import io
import json
import re
from pathlib import Path

import numpy as np
from PIL import Image

REBOUND = "rebound.test"
"""A name of somebody else's that leads to this machine, as after DNS rebinding."""


class Browser:
    """What the tests ask of a browser."""

    def __init__(self, driver) -> None:
        self.driver = driver

    def open(self, page: Path, width: int, dark: bool = False) -> None:
        """Load a page from disk, as wide as asked, in the light or the dark scheme."""
        screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        for kind in ("browser", "performance"):
            self.driver.get_log(kind)
        self.driver.get(page.as_uri())

    def run(self, script: str):
        """Run a script in the page."""
        return self.driver.execute_script(script)

    def complaints(self) -> list[str]:
        """List what the console said."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """List every address that was asked for since the page was opened, data inside the page left out."""
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        sent = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
        return [url for url in sent if not url.startswith("data:")]

    def picture(self) -> np.ndarray:
        """Take a picture of the whole page. Shapes: [height, width, 3]."""
        shot = self.driver.execute_cdp_cmd(
            "Page.captureScreenshot", {"captureBeyondViewport": True, "optimizeForSpeed": True}
        )
        return np.asarray(Image.open(io.BytesIO(base64.b64decode(shot["data"]))).convert("RGB"))

    def printed_pages(self) -> int:
        """Count the sheets of paper that the page takes."""
        self.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
        printed = self.driver.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})
        return int(re.findall(rb"/Count (\d+)", base64.b64decode(printed["data"]))[0])
