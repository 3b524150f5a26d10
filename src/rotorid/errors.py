"""The exceptions of rotorid, as a tree; each message contains what to do.

    RotoridError
    ├── LogError            a log that cannot be read
    │   ├── LogFormatError      not in the format that it claims
    │   └── SignalError         a signal is missing, has a wrong unit, shape or frame
    ├── AirframeError       an airframe file that is wrong
    ├── ExcitationError     the data cannot answer the question
    ├── LinkError           a link to a vehicle that cannot be opened, or does not carry what is needed
    ├── SettingError        an option or argument that cannot be
    └── OutputError         a result that could not be written

A message names the file, the signal, what is wrong and what to do, in one line. The commands print it after
`rotorid: ` and exit with code 2; the library raises.
"""

from typing import Final

from rotorid.quoting import printable

MOST_CHARACTERS: Final = 4000
"""Longest text of an error."""


class RotoridError(Exception):
    """Base of all errors that rotorid raises on purpose. The message is one line, even if a file name has line breaks."""

    def __str__(self) -> str:
        text = printable(super().__str__())
        return text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 4]} ..."


class LogError(RotoridError):
    """A log that cannot be read."""


class LogFormatError(LogError):
    """A file that is not in the format that its name or header claims."""


class SignalError(LogError):
    """A signal that is missing or has a wrong unit, shape or frame."""


class AirframeError(RotoridError):
    """An airframe file with a missing, mistyped or impossible entry."""


class ExcitationError(RotoridError):
    """Data without enough excitation for what was asked."""


class LinkError(RotoridError):
    """A link to a vehicle that cannot be opened, or does not carry what is needed."""


class SettingError(RotoridError):
    """An option or an argument with an invalid value."""


class OutputError(RotoridError):
    """A result that could not be written."""
