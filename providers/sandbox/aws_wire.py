"""The EC2, query and JSON protocols, read and written after botocore's own service models."""

import base64
import json
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from typing import Any
from xml.sax.saxutils import escape

from botocore.loaders import Loader
from botocore.model import ServiceModel, Shape

from providers.sandbox.wire import Response

XML = {"Content-Type": "text/xml;charset=UTF-8"}
JSON = {"Content-Type": "application/x-amz-json-1.1"}


class AwsError(Exception):
    """AWS says no: its code, its message, its HTTP status."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(code, message)
        self.code, self.message, self.status = code, message, status


@cache
def service_model(service: str) -> Any:
    """botocore's model of `ec2`, `sts` or `service-quotas`."""
    return ServiceModel(Loader().load_service_model(service, "service-2"), service)


# -- input


def parse(shape: Shape | None, form: dict[str, str]) -> dict[str, Any]:
    """The form's fields as the parameters that the caller gave. Raises AwsError for what the model does not know."""
    if shape is None:
        return {}
    known = {"Action", "Version"}
    parameters = _structure(shape, form, "", known)
    if unknown := sorted(set(form) - known):
        raise AwsError("UnknownParameter", f"The parameter {unknown[0]} is not recognized")
    if missing := [name for name in shape.required_members if name not in parameters]:
        raise AwsError("MissingParameter", f"The request must contain the parameter {missing[0]}")
    return parameters


def _structure(shape: Shape, form: dict[str, str], prefix: str, known: set[str]) -> dict[str, Any]:
    values = {}
    for name, member in shape.members.items():
        value = _value(member, form, f"{prefix}{_input_name(name, member)}", known)
        if value is not None:
            values[name] = value
    return values


def _value(shape: Shape, form: dict[str, str], name: str, known: set[str]) -> Any:
    if shape.type_name == "structure":
        nested = any(field.startswith(f"{name}.") for field in form)
        return _structure(shape, form, f"{name}.", known) if nested else None
    if shape.type_name == "list":
        return _list(shape, form, name, known) or None
    if name not in form:
        return None
    known.add(name)
    return _scalar(shape, name, form[name])


def _list(shape: Shape, form: dict[str, str], name: str, known: set[str]) -> list[Any]:
    start = f"{name}."
    numbers = {field[len(start) :].split(".", 1)[0] for field in form if field.startswith(start)}
    values = (_value(shape.member, form, f"{start}{n}", known) for n in sorted(filter(str.isdigit, numbers), key=int))
    return [value for value in values if value is not None]


def _input_name(name: str, shape: Shape) -> str:
    if "queryName" in shape.serialization:
        return str(shape.serialization["queryName"])
    wire = str(shape.serialization.get("name", name))
    return wire[0].upper() + wire[1:]


def _scalar(shape: Shape, name: str, text: str) -> Any:
    try:
        value = _READ.get(shape.type_name, str)(text)
    except ValueError as error:
        raise AwsError("InvalidParameterValue", f"Value ({text}) for parameter {name} is invalid.") from error
    if getattr(shape, "enum", None) and value not in shape.enum:
        raise AwsError("InvalidParameterValue", f"Value ({text}) for parameter {name} is invalid.")
    return value


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


def _time(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    return at if at.tzinfo else at.replace(tzinfo=UTC)


_READ: dict[str, Callable[[str], Any]] = {
    "integer": int,
    "long": int,
    "double": float,
    "float": float,
    "boolean": _boolean,
    "timestamp": _time,
    "blob": base64.b64decode,
}

# -- output


def ec2_reply(operation: str, result: dict[str, Any], request_id: str) -> Response:
    shape = service_model("ec2").operation_model(operation).output_shape
    inner = _render_members(shape, result) if shape else ""
    return _xml(
        f'<{operation}Response xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">'
        f"<requestId>{request_id}</requestId>{inner}</{operation}Response>"
    )


def sts_reply(operation: str, result: dict[str, Any], request_id: str) -> Response:
    shape = service_model("sts").operation_model(operation).output_shape
    return _xml(
        f'<{operation}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><{operation}Result>'
        f"{_render_members(shape, result)}</{operation}Result>"
        f"<ResponseMetadata><RequestId>{request_id}</RequestId></ResponseMetadata></{operation}Response>"
    )


def json_reply(result: dict[str, Any], request_id: str) -> Response:
    return Response(headers={**JSON, "x-amzn-RequestId": request_id}, body=json.dumps(result).encode())


def error_reply(service: str, error: AwsError, request_id: str) -> Response:
    code, message = escape(error.code), escape(error.message)
    if service == "service-quotas":
        body = json.dumps({"__type": error.code, "message": error.message}).encode()
        headers = {**JSON, "x-amzn-RequestId": request_id}
        return Response(status=error.status, headers=headers, body=body, code=error.code)
    if service == "sts":
        inner = f"<Error><Type>Sender</Type><Code>{code}</Code><Message>{message}</Message></Error>"
        text = f"<ErrorResponse>{inner}<RequestId>{request_id}</RequestId></ErrorResponse>"
    else:
        inner = f"<Errors><Error><Code>{code}</Code><Message>{message}</Message></Error></Errors>"
        text = f"<Response>{inner}<RequestID>{request_id}</RequestID></Response>"
    response = _xml(text)
    response.status, response.code = error.status, error.code
    return response


def _xml(text: str) -> Response:
    return Response(headers=dict(XML), body=f'<?xml version="1.0" encoding="UTF-8"?>\n{text}'.encode())


def _render_members(shape: Shape, values: dict[str, Any]) -> str:
    strange = set(values) - set(shape.members)
    assert not strange, f"not in {shape.name}: {strange}"
    return "".join(
        _render(member, str(member.serialization.get("name", name)), values[name])
        for name, member in shape.members.items()
        if values.get(name) is not None
    )


def _render(shape: Shape, name: str, value: Any) -> str:
    if shape.type_name == "structure":
        inner = _render_members(shape, value)
    elif shape.type_name == "list":
        item = str(shape.member.serialization.get("name", "member"))
        inner = "".join(_render(shape.member, item, one) for one in value)
    else:
        inner = escape(_text(value))
    return f"<{name}>{inner}</{name}>"


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return str(value)
