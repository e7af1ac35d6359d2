"""The public functions as the headers declare them."""
import re

from tree import code_only, without_directives

DECLARATION = re.compile(r"(?<![\w.])(?<!->)\b(noria_\w+)\s*\(")


class Function:
    def __init__(self, name, path, line, text, comment):
        self.name = name        # noria_x
        self.path = path        # of the header, relative to the root
        self.line = line
        self.text = text        # the declaration on one line, without comments
        self.comment = comment  # the comment that ends directly above it


def headers(lint):
    return [p for p in lint.files(["capi/include/noria"], (".h",))]


def flat(text):
    """Blanks bodies of structs, enums and functions, so that only declarations are left."""
    out = []
    depth = 0
    for index, char in enumerate(text):
        opens_linkage = char == "{" and re.search(r'extern\s+"?\s*C?\s*"?\s*$', text[max(0, index - 40):index])
        if char == "{" and not opens_linkage:
            depth += 1
        out.append(char if depth == 0 or char == "\n" else " ")
        if char == "}" and depth > 0:
            depth -= 1
    return "".join(out)


def comment_before(lines, index):
    """The comment block that ends on the line above `index`, as text."""
    end = index
    block = []
    while end > 0:
        line = lines[end - 1].strip()
        if line.startswith("//"):
            block.insert(0, line)
            end -= 1
        elif not block and line.endswith("*/"):
            while end > 0:
                block.insert(0, lines[end - 1].strip())
                end -= 1
                if "/*" in block[0]:
                    break
            break
        else:
            break
    return "\n".join(block)


def functions(lint):
    """Every function declared in the public headers, async.h's sugar excluded."""
    found = []
    for path in headers(lint):
        text = lint.read(path)
        lines = text.split("\n")
        code = flat(without_directives(code_only(text)))
        begin = 0
        for match in re.finditer(r";|\{|\}", code):
            declaration = code[begin:match.start()]
            start = begin
            begin = match.end()
            if match.group() != ";" or re.search(r"\btypedef\b", declaration):
                continue
            name = DECLARATION.search(declaration)
            if not name:
                continue
            first = start + len(declaration) - len(declaration.lstrip())
            index = code.count("\n", 0, first)
            found.append(Function(name.group(1), path, index + 1, " ".join(declaration.split()),
                                  comment_before(lines, index)))
    return found
