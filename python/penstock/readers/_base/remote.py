"""Files that are named by URLs: what users say about storage, and what reads which scheme.

S3, Google Cloud Storage, Azure and web servers are read by native code, the package
`penstock-remote`, which is loaded here when a program first names one of them. Everything else is
read by `fsspec`, if that knows the scheme.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from penstock._errors import messages

NATIVE = ("s3", "s3a", "gs", "az", "azure", "abfs", "abfss", "http", "https")
"""The schemes that `penstock-remote` reads."""

PACKAGES = {"hf": "huggingface_hub", "sftp": "paramiko", "gdrive": "gdrivefs", "oci": "ocifs"}
"""What `fsspec` needs for some schemes; it knows about others itself."""

ENVIRONMENT = {
    "s3": ("AWS_",),
    "gs": ("GOOGLE_", "SERVICE_ACCOUNT"),
    "az": ("AZURE_", "IDENTITY_ENDPOINT", "MSI_ENDPOINT"),
}
"""Variables by which a cloud's own tools are configured."""

ALIASES = {
    "anon": "skip_signature",
    "key": "access_key_id",
    "secret": "secret_access_key",
    "endpoint_url": "endpoint",
    "region_name": "region",
    "profile": "profile",
}
"""Names that `s3fs` has for options."""

MEMORY_BYTES = 256 << 20
"""How much a reader keeps of files of records in memory; see `src/py/remote.rs`."""


class Storage(NamedTuple):
    """What a reader was told about storage.

    Args:
        options: Options for the server, by name.
        cache_dir: The folder of the cache.
        cache_bytes: How large it may become.
    """

    options: dict[str, Any] | None = None
    cache_dir: str | None = None
    cache_bytes: int | None = None


current: ContextVar[Storage | None] = ContextVar("storage", default=None)
"""What the reader that is being opened was told."""


@contextmanager
def using(storage: Storage | None) -> Iterator[None]:
    """Open data sets with these options."""
    token = current.set(storage)
    try:
        yield
    finally:
        current.reset(token)


def checked(what: str, options: object, cache_dir: object, cache_bytes: object) -> Storage | None:
    """The arguments of a reader that are about storage; None if there are none."""
    if options is None and cache_dir is None and cache_bytes is None:
        return None
    if options is not None:
        if not isinstance(options, Mapping) or not all(isinstance(key, str) for key in options):
            raise messages.wrong_argument(
                what, "storage_options", options, "a dict of names and values"
            )
        options = dict(options)
    if cache_bytes is not None:
        if isinstance(cache_bytes, float) and cache_bytes.is_integer():
            cache_bytes = int(cache_bytes)
        if not isinstance(cache_bytes, int) or isinstance(cache_bytes, bool):
            raise messages.wrong_argument(what, "cache_bytes", cache_bytes, "a number of bytes")
        if not 0 < cache_bytes < 2**63:
            raise messages.bad_argument(what, "cache_bytes", f"must be positive, got {cache_bytes}")
    folder = None
    if cache_dir is not None:
        folder = _folder(what, cache_dir)
        if cache_bytes is None:
            raise messages.bad_argument(
                what, "cache_dir", "needs a limit; give `cache_bytes`, such as `100 * 2**30`"
            )
    return Storage(options, folder, cache_bytes)


def _folder(what: str, given: object) -> str:
    if not isinstance(given, str | os.PathLike):
        raise messages.wrong_argument(what, "cache_dir", given, "the name of a folder")
    folder = os.fspath(given)
    if "://" in folder:
        raise messages.bad_argument(what, "cache_dir", f"must be a local folder, got {folder}")
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise messages.bad_argument(
            what, "cache_dir", f"can't be used: {folder}: {error.strerror}"
        ) from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise messages.bad_argument(
            what, "cache_dir", f"can't be used: {folder}: there is no permission to write to it"
        )
    return folder


def resolve(base: str, options: Mapping[str, Any] | None) -> tuple[Any, ...]:
    """What reads the files of a URL such as `s3://bucket`; called by native code.

    Returns a kind and what belongs to it, see `src/py/remote.rs`.
    """
    scheme = base.partition("://")[0].lower()
    if scheme in NATIVE:
        try:
            import penstock_remote
        except ImportError:
            return "module", scheme
        try:
            return "native", penstock_remote.table(), _pairs(scheme, options or {})
        except ValueError as error:
            return "configuration", str(error)
    try:
        import fsspec
        from fsspec.registry import known_implementations
    except ImportError:
        known = _near(scheme, NATIVE)
        return ("scheme", scheme, known) if known else ("package", scheme, "fsspec")
    from penstock.readers._base.fsspec_files import FsspecFiles

    try:
        return "python", FsspecFiles(fsspec.filesystem(scheme, **(options or {})), base)
    except ImportError as error:
        return "package", scheme, PACKAGES.get(scheme, error.name or "")
    except ValueError:
        if scheme in known_implementations:
            raise
        return "scheme", scheme, _near(scheme, [*NATIVE, *known_implementations])


def _near(scheme: str, known: Any) -> str:
    from difflib import get_close_matches

    found = get_close_matches(scheme, list(known), 1, 0.5)
    return str(found[0]) if found else ""


def _pairs(scheme: str, options: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Options as native code takes them: those of the environment first, which others override."""
    cloud = {"s3a": "s3", "azure": "az", "abfs": "az", "abfss": "az"}.get(scheme, scheme)
    given = {ALIASES.get(key, key): value for key, value in options.items()}
    if cloud == "gs" and "endpoint" in given:
        given["base_url"] = given.pop("endpoint")
    profile = given.pop("profile", None)
    pairs = []
    prefixes = ENVIRONMENT.get(cloud, ())
    for name, value in sorted(os.environ.items()):
        if prefixes and name.startswith(prefixes) and value:
            pairs.append((f"env:{name}", value))
    if cloud == "s3":
        pairs = [*_profile(profile, {name for name, _ in pairs}, given), *pairs]
    return pairs + [(key, _text(key, value)) for key, value in given.items()]


def for_object_store(options: Mapping[str, Any] | None) -> dict[str, str] | None:
    """Options by the names of the crate `object_store`, for packages that take these."""
    if options is None:
        return None
    named = {ALIASES.get(key, key): value for key, value in options.items()}
    if str(named.get("endpoint", "")).startswith("http://"):
        named.setdefault("allow_http", True)
    return {key: _text(key, value) for key, value in named.items()}


def _text(key: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float) and "timeout" in key:
        return f"{int(value * 1000)}ms"
    return str(value)


def _profile(
    name: str | None, environment: set[str], given: Mapping[str, Any]
) -> list[tuple[str, str]]:
    """What the files of AWS's tools say, where nothing else names a credential."""
    has_key = "env:AWS_ACCESS_KEY_ID" in environment or any(
        key in given for key in ("access_key_id", "aws_access_key_id", "skip_signature")
    )
    if has_key and name is None:
        return []
    from configparser import ConfigParser
    from configparser import Error as ConfigError

    chosen = name or os.environ.get("AWS_PROFILE") or "default"
    home = os.path.expanduser("~/.aws")
    files = [
        (os.environ.get("AWS_CONFIG_FILE", f"{home}/config"), f"profile {chosen}"),
        (os.environ.get("AWS_SHARED_CREDENTIALS_FILE", f"{home}/credentials"), chosen),
    ]
    found: dict[str, str] = {}
    for path, section in files:
        parser = ConfigParser(interpolation=None)
        try:
            parser.read(path)
        except (ConfigError, OSError, UnicodeDecodeError):
            continue
        for part in {section, chosen}:
            if parser.has_section(part):
                found.update(parser.items(part))
    if name is not None and not found:
        raise ValueError(f"there is no profile {name!r} in {' or '.join(p for p, _ in files)}")
    names = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token", "region")
    wanted = [*names, "endpoint_url"]
    return [(f"env:{_config_name(key)}", found[key]) for key in wanted if found.get(key)]


def _config_name(key: str) -> str:
    return key.upper() if key.startswith("aws_") else f"AWS_{key.upper()}"
