"""Errors: the right class for each Status, bodies that go both ways, and what a reader needs to act."""

import pickle

import pytest

from informers import errors
from informers.errors import ApiError, ConflictError, ExpiredError, GoneError, InformersError, NotFoundError
from informers.key import ObjectKey


@pytest.mark.parametrize(
    ("reason", "code", "expected"),
    [
        ("NotFound", 404, errors.NotFoundError),
        ("AlreadyExists", 409, errors.AlreadyExistsError),
        ("Conflict", 409, errors.ConflictError),
        ("Expired", 410, errors.ExpiredError),
        ("Gone", 410, errors.GoneError),
        ("Invalid", 422, errors.InvalidError),
        ("TooManyRequests", 429, errors.TooManyRequestsError),
        ("ServerTimeout", 500, errors.ServerTimeoutError),
        ("Timeout", 504, errors.ServerTimeoutError),
        ("InternalError", 500, errors.InternalError),
        ("ServiceUnavailable", 503, errors.ServiceUnavailableError),
        ("", 401, errors.UnauthorizedError),
        ("", 403, errors.ForbiddenError),
        ("", 502, errors.ServiceUnavailableError),
        ("SomethingNew", 409, errors.ConflictError),
        ("SomethingNew", 418, ApiError),
    ],
)
def test_the_class_follows_the_reason_and_else_the_code(reason, code, expected):
    error = ApiError.from_status({"reason": reason, "message": "no", "code": code}, http_status=500)
    assert type(error) is expected
    assert (error.status, error.message) == (code, "no")


@pytest.mark.parametrize("body", [{}, {"code": "x", "reason": 5, "message": None, "details": [], "metadata": 3}])
def test_any_body_makes_an_error(body):
    error = ApiError.from_status(body, http_status=404)
    assert isinstance(error, NotFoundError)
    assert error.message


def test_a_name_that_is_taken_is_no_conflict_of_versions():
    assert not issubclass(errors.AlreadyExistsError, ConflictError)
    assert issubclass(ExpiredError, GoneError)


def test_status_bodies_go_both_ways():
    cause = {"reason": "FieldValueInvalid", "message": "bad", "field": "spec.x"}
    error = errors.InvalidError("it is bad", details={"name": "x", "kind": "Pod", "causes": [cause]}, retry_after=2)
    body = error.to_status()
    assert (body["kind"], body["apiVersion"], body["status"], body["code"]) == ("Status", "v1", "Failure", 422)
    assert body["details"]["retryAfterSeconds"] == 2
    again = ApiError.from_status(body, http_status=422)
    assert type(again) is errors.InvalidError
    assert again.causes == [cause]
    assert again.has_cause("FieldValueInvalid")
    assert again.retry_after == 2.0


def test_an_expired_token_brings_a_fresh_one_along():
    error = ApiError.from_status({"reason": "Expired", "metadata": {"continue": "abc"}}, http_status=410)
    assert error.continue_token == "abc"
    assert error.to_status()["metadata"] == {"continue": "abc"}


def test_errors_show_the_request_they_belong_to():
    error = NotFoundError("no such pod", verb="get", resource="pods", key=ObjectKey("ns", "x"))
    assert str(error) == "no such pod [404 NotFound; get pods ns/x]"


@pytest.mark.parametrize(
    ("error", "retriable"),
    [
        (errors.TooManyRequestsError("x"), True),
        (errors.ServerTimeoutError("x"), True),
        (errors.InternalError("x"), True),
        (errors.ConflictError("x"), False),
        (errors.ForbiddenError("x"), False),
        (errors.ConnectionRefused("x"), True),
        (errors.RequestTimeout("x"), True),
        (errors.TlsError("x"), False),
        (errors.MalformedResponseError("x"), False),
    ],
)
def test_errors_say_whether_the_same_call_may_succeed_later(error, retriable):
    assert error.retriable is retriable


def test_time_outs_are_also_the_builtin_one():
    assert issubclass(errors.RequestTimeout, TimeoutError)
    assert issubclass(errors.Timeout, TimeoutError)
    assert issubclass(errors.RequestTimeout, InformersError)


@pytest.mark.parametrize(
    "error",
    [
        errors.NotFoundError("x", details={"name": "a"}, verb="get", key=ObjectKey("a", "b"), retry_after=1.5),
        errors.ConnectionReset("x", address="http://h", maybe_applied=True),
        errors.RequestTimeout("x", address="http://h"),
        errors.MalformedResponseError("x", verb="list"),
    ],
)
def test_errors_can_be_pickled(error):
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert again.__dict__ == error.__dict__
    assert str(again) == str(error)


def test_every_error_of_the_module_is_in_the_tree_of_its_docstring():
    for name in errors.__all__:
        assert issubclass(getattr(errors, name), InformersError)
        assert name in (errors.__doc__ or "")
