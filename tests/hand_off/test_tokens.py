"""Signing keys that stay on a token; the token is SoftHSM's, where it and python-pkcs11 are installed."""

import shutil
import subprocess
from pathlib import Path

import pytest

from dpmodels.errors import InvalidArgument, Unsuitable
from dpmodels.hand_off.signature import sign_manifest
from dpmodels.hand_off.verification import VERIFIED
from dpmodels.hand_off.verify import verify_hand_off
from dpmodels.keys import key_text, private_key
from dpmodels.ledger.approval import Officer
from dpmodels.ledger.ledger import Ledger
from tasks.run.signing import PASSPHRASE, check_signing_key, passphrase_of
from tests.hand_off.make_golden import GOLDEN
from tests.kit.charges import CAP

pytestmark = pytest.mark.processes

MODULE = next((path for path in Path("/usr/lib").rglob("libsofthsm2.so")), None)
PIN = "1234"


@pytest.fixture(scope="module")
def token(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a token with one ed25519 key, and return the key's URI; a process has one token as long as it lives."""
    pkcs11 = pytest.importorskip("pkcs11")
    if MODULE is None or shutil.which("softhsm2-util") is None:
        pytest.skip("SoftHSM is not installed")
    from pkcs11.util.ec import encode_named_curve_parameters

    folder = tmp_path_factory.mktemp("token")
    (folder / "softhsm2.conf").write_text(f"directories.tokendir = {folder}\n")
    with pytest.MonkeyPatch.context() as hand_off:
        hand_off.setenv("SOFTHSM2_CONF", str(folder / "softhsm2.conf"))
        made = ["softhsm2-util", "--init-token", "--free", "--label", "nacre one", "--pin", PIN, "--so-pin", PIN]
        subprocess.run(made, check=True, capture_output=True)
        with pkcs11.lib(str(MODULE)).get_token(token_label="nacre one").open(rw=True, user_pin=PIN) as session:
            curve = {pkcs11.Attribute.EC_PARAMS: encode_named_curve_parameters("1.3.101.112")}
            parameters = session.create_domain_parameters(pkcs11.KeyType.EC_EDWARDS, curve, local=True)
            pair = pkcs11.Mechanism.EC_EDWARDS_KEY_PAIR_GEN
            parameters.generate_keypair(mechanism=pair, store=True, label="sign", id=b"\x01")
    return Path("pkcs11:token=nacre%20one;object=sign")


@pytest.fixture(autouse=True)
def driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NACRE_PKCS11_MODULE", str(MODULE or "/usr/lib/softhsm/libsofthsm2.so"))


@pytest.fixture
def public(token: Path, tmp_path: Path) -> Path:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    key = private_key(token, passphrase=PIN).public_key()
    (tmp_path / "token.pub").write_bytes(key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return tmp_path / "token.pub"


def test_a_token_signs_a_hand_off_and_for_an_officer(
    token: Path, public: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PASSPHRASE, PIN)
    check_signing_key(token)
    hand_off = tmp_path / "own"
    shutil.copytree(GOLDEN / "LAYOUT-26" / "laid-out", hand_off)
    sign_manifest(hand_off, token, passphrase_of(token))
    assert verify_hand_off(hand_off, public).verdict == VERIFIED
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.open_account("clinic", dataset="visits", budget_cap=CAP, officer=Officer.read("Ada", public))
    ledger.change_cap("clinic", reason="more", epsilon=2, key=token, passphrase=PIN)
    assert ledger.verify() == [] and "approval" in ledger.entries()[-1].content


def test_what_a_token_cannot_do_is_one_sentence_without_the_pin(token: Path) -> None:
    for uri, pin in (
        (token, "9876"),
        (Path(str(token).replace("sign", "other")), PIN),
        (Path(str(token).replace("nacre%20one", "two")), PIN),
    ):
        with pytest.raises(InvalidArgument) as error:
            private_key(uri, passphrase=pin)
        assert error.value.name == "signing_key" and PIN not in str(error.value) and "9876" not in str(error.value)
    assert key_text(private_key(token, passphrase=PIN).public_key())


def test_a_driver_that_is_none_is_said(token: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place, match in (("/nowhere.so", "that file is none"), ("", "set NACRE_PKCS11_MODULE"), ("m.so", "whole path")):
        monkeypatch.setenv("NACRE_PKCS11_MODULE", place)
        with pytest.raises((InvalidArgument, Unsuitable), match=match):
            private_key(token, passphrase=PIN)


@pytest.mark.parametrize(
    "more",
    ["?module-path=/m.so", ";module-path=/m.so", "?pin-value=5555", ";Pin-Value=5555", "& pin-value=5555", ";color=b"],
)
def test_a_uri_names_a_key_and_neither_a_library_nor_a_pin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: str
) -> None:
    """A configuration file may hold the URI; what it named would run here and be given the PIN."""
    loaded: list[str] = []
    monkeypatch.setattr("pkcs11.lib", loaded.append)
    with pytest.raises(Unsuitable) as error:
        private_key(Path(f"pkcs11:object=sign{more}"), passphrase=PIN)
    assert "5555" not in str(error.value) and str(error.value).startswith("signing_key must be pkcs11:") and not loaded
    with pytest.raises(Unsuitable):
        private_key(Path("pkcs11:token=a"), passphrase=PIN)
