"""Patterns of rewriting rules as Python data, and models that are built from them.

`read(text)` reads what `typelift rewrite --source` prints. `Builder` makes an OpenVINO graph in which a pattern
occurs, or nearly occurs, with random shapes, constants, spellings and operand orders.
"""

import dataclasses
import re

TYPES = {"f64", "f32", "f16", "bf16", "i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8", "boolean", "u4", "i4", "u2", "nf4", "f4e2m1"}
TOKEN = re.compile(
    r'\s*(=>|==|!=|<=|>=|&&|\|\||\.\.\.|-inf\b|inf\b|\d+\.?\d*(?:e-?\d+)?~?|"[^"]*"|\$?[A-Za-z_][A-Za-z0-9_]*(?:-\d+(?![\d.]))?|.)', re.S
)


@dataclasses.dataclass
class Rule:
    """A rule: its place in its set, its pattern and what its clauses say."""

    set: str
    number: int
    text: str
    roots: list
    where: dict
    condition: str
    preamble: str = ""

    @property
    def key(self):
        return f"{self.set}.{self.number:02}"

    @property
    def source(self):
        """A file of statements that has this rule alone."""
        return self.preamble + self.text + "\n"


class Reader:
    """A reader of one pattern. Operations with a revision keep it in their names (`Softmax-8`)."""

    def __init__(self, text, macros):
        text = re.sub(r"#[^\n]*", "", text)
        # A revision belongs to a name that begins with a capital only.
        self.tokens = []
        for token in TOKEN.findall(text):
            if not token.strip():
                continue
            match = re.fullmatch(r"([a-z_][A-Za-z0-9_]*)(-\d+)", token)
            self.tokens += [match[1], "-", match[2][1:]] if match else [token]
        self.at, self.macros = 0, macros

    def peek(self, ahead=0):
        return self.tokens[self.at + ahead] if self.at + ahead < len(self.tokens) else ""

    def take(self, expected=None):
        token = self.peek()
        if expected is not None and token != expected:
            raise SyntaxError(f"{expected!r} expected, not {token!r}, in {' '.join(self.tokens)}")
        self.at += 1
        return token

    def eats(self, token):
        if self.peek() == token:
            self.at += 1
            return True
        return False

    def alternatives(self):
        branches = [self.branch()]
        while self.eats("|"):
            branches.append(self.branch())
        return branches[0][0] if len(branches) == 1 and not branches[0][1] else ("either", branches)

    def branch(self):
        term, settings = self.sum(), {}
        if self.eats("with"):
            while True:
                name = self.take()
                self.take("=")
                settings[name] = self.take()
                if not (self.peek() == "," and self.peek(2) == "="):
                    break
                self.take(",")
        return term, settings

    def sum(self):
        parts = [(1, self.product())]
        while self.peek() in ("+", "-"):
            parts.append((1 if self.take() == "+" else -1, self.product()))
        return parts[0][1] if len(parts) == 1 and parts[0][0] == 1 else ("sum", parts)

    def product(self):
        factors = [self.power()]
        while self.peek() in ("*", "/"):
            sign = 1 if self.take() == "*" else -1
            power, term = self.power()
            factors.append((power * sign, term))
        return factors[0][1] if len(factors) == 1 and factors[0][0] == 1 else ("product", factors)

    def power(self):
        if self.eats("-"):
            if re.match(r"\d", self.peek()):
                return 1, ("number", -float(self.take().rstrip("~")))
            power, term = self.power()
            return 1, ("product", [(power, term), (1, ("number", -1.0))])
        term = self.atom()
        if self.eats("^"):
            sign = -1 if self.eats("-") else 1
            return sign * float(self.take()), term
        return 1, term

    def atom(self):
        token = self.take()
        if re.fullmatch(r"\d.*", token):
            return "number", float(token.rstrip("~"))
        if token in ("inf", "-inf"):
            return "number", float(token)
        if token in ("true", "false"):
            return "number", token == "true"
        if token == "[":
            items = []
            while not self.eats("]"):
                sign = -1 if self.eats("-") else 1
                items.append(sign * int(self.take()))
                self.eats(",")
            return "list", items
        if token == "(":
            if self.peek()[0].isupper() and self.peek(1) == "|":
                names = [self.take()]
                while self.eats("|"):
                    names.append(self.take())
                self.take(")")
                return self.call(names)
            term = self.alternatives()
            self.take(")")
            return term
        if token[0].isupper():
            return self.call([token])
        if self.peek() == "(" and token in self.macros:
            return self.expand(token)
        if self.eats("..."):
            return "list of tensors", token
        optional = self.eats("?")
        constant, types = False, []
        if self.eats(":"):
            constant = self.eats("const")
            while self.peek() in TYPES or self.peek().startswith("$") or self.peek() in ("any", "float", "integer"):
                types.append(self.take())
                if self.peek() == "|" and self.peek(1) in TYPES:
                    self.take()
        return "name", token, optional, constant, types

    def call(self, names):
        marks = ""
        while self.peek() in ("?", "&"):
            marks += self.take()
        self.take("(")
        inputs, more = [], False
        while not self.eats(")"):
            if self.eats("..."):
                more = True
            else:
                term = self.alternatives()
                inputs.append((term, self.eats("?")))
            self.eats(",")
        attributes = {}
        if self.eats("{"):
            while not self.eats("}"):
                if self.eats("..."):
                    self.eats(",")
                    continue
                name = self.take()
                self.take("=")
                value = self.take()
                attributes[name] = "-" + self.take() if value == "-" else value
                self.eats(",")
        return "call", names, marks, inputs, more, attributes

    def expand(self, name):
        parameters, body = self.macros[name]
        self.take("(")
        given = []
        while not self.eats(")"):
            given.append(self.alternatives())
            self.eats(",")
        return replaced(Reader(body, self.macros).alternatives(), dict(zip(parameters, given)))


def replaced(term, given):
    """A term with its names replaced, settings of branches included."""
    match term:
        case ("name", name, *_) if name in given:
            return given[name]
        case ("either", branches):
            return "either", [
                (
                    replaced(branch, given),
                    {given[name][1] if name in given and given[name][0] == "name" else name: value for name, value in settings.items()}
                    | {("is", repr(given[name])): (given[name], value) for name, value in settings.items() if name in given and given[name][0] != "name"},
                )
                for branch, settings in branches
            ]
        case ("sum" | "product" as kind, parts):
            return kind, [(power, replaced(part, given)) for power, part in parts]
        case ("call", names, marks, inputs, more, attributes):
            inputs = [(replaced(part, given), optional) for part, optional in inputs]
            own = {name: given[value] if value in given else value for name, value in attributes.items()}
            return "call", names, marks, inputs, more, own
    return term


def split_outside(text, marks):
    """Cuts a text at marks that stand outside of brackets; gives the parts, each after its mark."""
    depth, at, parts, start, mark = 0, 0, [], 0, ""
    while at < len(text):
        character = text[at]
        depth += character in "([{"
        depth -= character in ")]}"
        found = next((it for it in marks if depth == 0 and text.startswith(it, at)), None)
        if found:
            parts.append((mark, text[start:at]))
            mark, at = found, at + len(found)
            start = at
        else:
            at += 1
    return [*parts, (mark, text[start:])]


def statements(source):
    """The statements of a set: lines that go on are joined."""
    joined = []
    for line in source.splitlines():
        line = re.sub(r"(^|\s)#.*", "", line)
        if not line.strip():
            continue
        opened = joined and sum(joined[-1].count(it) for it in "([{") > sum(joined[-1].count(it) for it in ")]}")
        goes_on = line[0].isspace() or line.startswith(("|", "=>"))
        if joined and (opened or goes_on or joined[-1].rstrip().endswith("=>")):
            joined[-1] += "\n" + line
        else:
            joined.append(line)
    return joined


def read(text):
    """The rules of `--source`, and the names of sets that are code."""
    sections = re.split(r"^## ", text, flags=re.M)
    macros, rules, coded, common = {}, [], [], ""
    for index, section in enumerate(sections):
        name, _, source = section.partition("\n")
        if index == 0:
            source = section
        own, number, preamble = dict(macros), 0, common
        for statement in statements(source):
            if statement.startswith("def "):
                head, _, body = statement[4:].partition("=")
                called, _, parameters = head.partition("(")
                preamble += statement + "\n"
                own[called.strip()] = ([it.strip() for it in parameters.rstrip(" )").split(",")], body)
                continue
            number += 1
            rules.append(read_rule(name.strip(), number, statement, own))
            rules[-1].preamble = preamble
        if index == 0:
            macros, common = own, preamble
        elif number == 0:
            coded.append(name.strip())
    return rules, coded


def read_rule(name, number, statement, macros):
    text = statement
    while match := re.match(r"\s*(try|once|allow\([^)]*\))\s+", statement):
        statement = statement[match.end() :]
    statement = re.sub(r"^\s*[A-Za-z_][\w./-]*:(?!=)\s*", "", statement)
    clauses = split_outside(" " + statement, ["=>", "\n   where ", " where ", " if ", "\n    where ", " allow "])
    parts = {"pattern": clauses[0][1]} | {mark.strip(): body for mark, body in clauses[1:]}
    where = {}
    for _, item in split_outside(re.sub(r"\n\s*(?=\(?\w+[^=\n|]*=[^=>])", "\n;", parts.get("where", "")), ["\n;", ", "]):
        if not item.strip():
            continue
        if re.match(r"\s*\(?[\w., ]+\)?\s*=[^=>]", item):
            head, _, body = item.partition("=")
            outputs = re.findall(r"\w+", head)
            where[outputs[0]] = (outputs, "..." in head, Reader(body, macros).alternatives())
        else:
            raise SyntaxError(f"no definition: {item!r} in {text}")
    pattern = parts["pattern"].strip()
    named = re.match(r"\(?[\w., ]+\)?\s*=(?![=>])", pattern)
    if named:
        pattern = pattern[named.end() :]
    return Rule(name, number, text, [Reader(pattern, macros).alternatives()], where, parts.get("if", ""))
