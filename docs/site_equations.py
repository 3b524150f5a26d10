"""Equations of the theory pages and of the reference, whose sources are plain text: MkDocs calls this hook (see mkdocs.yml).

Names of Greek letters, indices, exponents and operators become what they stand for: "theta_k <- S^-1 g" is a θ with an
index k, an arrow and an exponent. A line of a block is split where it has three spaces, and these parts wrap on narrow screens.
"""

from __future__ import annotations

import html
import re
from typing import Any

PAGES = ("theory.md", "theory-identification.md", "size-priors.md")

LETTERS = "alpha beta gamma delta eta theta kappa lambda nu pi rho sigma tau phi psi omega Lambda Phi Omega"
GREEK = {name: html.unescape(f"&{name};") for name in LETTERS.split()}
MINUS, PRIME, TIMES = "\N{MINUS SIGN}", "\N{PRIME}", "\N{MULTIPLICATION SIGN}"
NAME = rf"(?:{'|'.join(GREEK)}|sum|[A-Za-z]{{1,2}}\d?|cos|sin|Y)"
INDEX = r"(?:\{[^{}]*\}|\([^()]*\)|[^\W_]+)"
POWER = r"(?:-?\d+(?:[./]\d+)*|-?[A-Za-z](?![A-Za-z])|\([^()]*\)|\{[^{}]*\})"

BLOCK = re.compile(
    r"<div class=\"(?:language-text )?highlight\"><pre>(?:<span></span>)?<code>([^<]*)</code></pre></div>"
)
CODE = re.compile(r"<code>([^<\n]*)</code>")
SPACED_CODE = re.compile(r"<code>([^<\n]* [^<\n]*)</code>")
MARKUP = re.compile(r"(<pre\b.*?</pre>|<(code|script|h\d|a)\b.*?</\2>|<[^>]*>)", re.DOTALL)
NUMBER = re.compile(r"\((?:\d+(?:[.-]\d+)*(?:-\d+)?(?:, )?)+\)$|\([A-Z][\w -]+\)$")
WORD = re.compile(r"[A-Za-z]\w*")
SYMBOL = re.compile(rf"(?:{'|'.join(GREEK)}|[A-Za-z])(?:_\w+)?|sum(?:_\w+)?|sqrt|exp|log|sin|cos|mm|kg")
NO_MATHEMATICS = re.compile(r"--|[\"$`]|::|^\.|\w\.\w*[A-Za-z]")

OPERATORS = (
    (re.compile(r"\[\+\]"), "⊞"),
    (re.compile(r"\[-\]"), "⊟"),
    (re.compile(r"(?<![\w.])\(x\)(?!\w)"), "⊗"),
    (re.compile(r"<-"), "←"),
    (re.compile(r"<="), "≤"),
    (re.compile(r">="), "≥"),
    (re.compile(r"(?<=[\w)'] )x(?= [(\w])"), TIMES),
    (re.compile(r"(?<=\w) \. (?=\w)"), " · "),
    (re.compile(r"(?<=[\w)}])''"), PRIME * 2),
    (re.compile(r"(?<=[\w)}*^])'(?!\w)"), PRIME),
    (re.compile(r"(?<![\w}^])-(?=[\w(|])|(?<= )-(?= )"), MINUS),
    (re.compile(r"(\w)\^(?![\w({-])"), "\\1\N{COMBINING CIRCUMFLEX ACCENT}"),
)
LETTER = rf"(?:{'|'.join(GREEK)})(?![\w-]| points)"
IN_TEXT = re.compile(
    rf"(?<![\w/.-])(?:{NAME}_{INDEX}(?![A-Za-z0-9_])|{LETTER}|[A-Za-z]+\d*(?=\^{POWER}))(?:\^{POWER})?"
    rf"|(?<=[)/])\^{POWER}|(?<=/)[a-z]\^\d|\[[+-]\]|\bsqrt(?=\()"
)


def on_page_content(content: str, page: Any, config: Any, files: Any) -> str:
    """Set the equations of a page of theory: its blocks, its inline code that is mathematics, and symbols in its text.

    In the reference, blocks are not equations, and code without a space is a name.
    """
    is_reference = page.file.src_uri.startswith("reference/")
    if page.file.src_uri not in PAGES and not is_reference:
        return content
    if not is_reference:
        content = BLOCK.sub(lambda match: block(html.unescape(match[1])), content)
    code = SPACED_CODE if is_reference else CODE
    content = code.sub(lambda match: inline(match[0], html.unescape(match[1])), content)
    parts = MARKUP.split(content)
    parts[::3] = [IN_TEXT.sub(lambda match: typeset(html.unescape(match[0])), part) for part in parts[::3]]
    del parts[2::3]
    return "".join(part or "" for part in parts)


def block(source: str) -> str:
    """A block of equations, a row for each line; its parts are side by side where there is room."""
    rows = ""
    for line in source.strip("\n").splitlines():
        parts = re.split(r" {3,}", line.strip())
        classes = ['class="number"' if NUMBER.fullmatch(part) else "" for part in parts]
        spans = (f"<span {kind}>{typeset(part)}</span>" for kind, part in zip(classes, parts, strict=True))
        rows += f"<div>{' '.join(spans)}</div>" if line.strip() else ""
    return f'<div class="equations">{rows}</div>'


def inline(markup: str, source: str) -> str:
    """Inline code, set as an equation if it is one."""
    is_mathematics = all(
        map(SYMBOL.fullmatch, WORD.findall(re.sub(r"_(?=[({])", " ", source)))
    ) and not NO_MATHEMATICS.search(source)
    if not is_mathematics:
        return markup
    return f"<code>{typeset(source)}</code>"


def typeset(source: str) -> str:
    """An expression in plain text as HTML."""
    for pattern, sign in OPERATORS:
        source = pattern.sub(sign, source)
    text = html.escape(source, quote=False)
    for name, letter in GREEK.items():
        text = re.sub(rf"(?<![A-Za-z]){name}(?![A-Za-z])", letter, text)
    text = re.sub(r"\bsqrt(?=\(|$)", "√", text)
    text = re.sub(r"\bsum(?=[ _])", "Σ", text)
    text = re.sub(rf"_({INDEX})", lambda match: f"<sub>{bare(match[1])}</sub>", text)
    text = re.sub(r"\b([A-Z])([x-z]{2})\b", r"\1<sub>\2</sub>", text)
    text = re.sub(r"\b([mCw])0\b", r"\1<sub>0</sub>", text)
    text = re.sub(rf"\^({POWER})", lambda match: f"<sup>{bare(match[1])}</sup>", text)
    return text.replace("*", "<sup>*</sup>").replace("...", "…")


def bare(index: str) -> str:
    """An index or exponent without its outer brackets, with signs as minus."""
    if index[0] in "({":
        index = index[1:-1]
    return index.replace("-", MINUS)
