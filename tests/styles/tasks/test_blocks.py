"""Its examples with only their import lines changed, its placeholders defined."""

from typing import Any

from antiphon.models.script import Script, call
from antiphon.styles.tasks import AgentToolkit, MessageType, StructuredMessage, ToolCapableAgent


def basic_message() -> StructuredMessage:
    # Create a simple message
    message = StructuredMessage(
        content="What's the weather in New York?",
        metadata={"type": MessageType.QUERY, "priority": "high"},
        task_id="weather-task-123",  # Optional: auto-generated if not provided
    )

    # Set source and target
    message.source_agent = "user"
    message.target_agent = "weather_agent"
    return message


def get_weather(location: str, unit: str = "celsius") -> dict[str, Any]:
    """The weather at a place."""
    return {"temp": 22, "conditions": "sunny", "unit": unit, "location": location}


def test_message_structure() -> None:
    assert list(basic_message().to_dict()) == [
        "content",
        "metadata",
        "task_id",
        "timestamp",
        "tool_calls",
        "tool_results",
        "source_agent",
        "target_agent",
    ]


def test_message_types() -> None:
    names = {name: value for name, value in vars(MessageType).items() if name.isupper()}
    assert names == {
        "QUERY": "query",
        "TASK": "task",
        "RESPONSE": "response",
        "RESULT": "result",
        "ERROR": "error",
        "STATUS": "status",
        "TOOL_REQUEST": "tool_request",
        "TOOL_RESPONSE": "tool_response",
    }


def test_creating_a_basic_message() -> None:
    message = basic_message()
    assert (message.content, message.task_id) == ("What's the weather in New York?", "weather-task-123")
    assert (message.message_type, message.metadata["priority"]) == ("query", "high")
    assert (message.source_agent, message.target_agent) == ("user", "weather_agent")


def test_creating_response_messages() -> None:
    message = basic_message()
    # Create a response to an existing message
    response = StructuredMessage.create_response(
        content="The weather in New York is sunny and 72°F.", original_message=message
    )

    # Source and target are automatically swapped
    assert response.source_agent == "weather_agent"
    assert response.target_agent == "user"
    assert response.metadata["type"] == MessageType.RESPONSE
    assert response.metadata["in_reply_to"] == message.task_id


def test_error_handling() -> None:
    message = basic_message()
    # Create an error message
    error = StructuredMessage.create_error(
        error_message="Failed to retrieve weather data: API unavailable", original_message=message
    )

    assert error.metadata["type"] == MessageType.ERROR
    assert error.content == "Failed to retrieve weather data: API unavailable"


def test_adding_tool_calls_and_results() -> None:
    # Add a tool call to a message
    weather_message = StructuredMessage(content="Check the weather forecast for London")

    # Add a tool call programmatically
    call_id = weather_message.add_tool_call(
        name="get_weather", arguments={"location": "London", "unit": "celsius"}
    )

    # Add a tool result to a response
    response = StructuredMessage(content="Here's the weather information you requested:")

    # Add the tool result
    response.add_tool_result(
        name="get_weather",
        result={"temp": 22, "conditions": "sunny", "humidity": 45},
        call_id=call_id,
        status="success",
    )

    # For errors in tool execution
    response.add_tool_result(
        name="get_weather",
        result=None,
        call_id="failed-call-id",
        status="error",
        error="API connection timeout",
    )
    assert weather_message.tool_calls == [
        {"name": "get_weather", "arguments": {"location": "London", "unit": "celsius"}, "id": call_id}
    ]
    good, bad = response.tool_results
    assert (good["call_id"], good["status"], good["error"]) == (call_id, "success", None)
    assert (bad["call_id"], bad["status"], bad["error"]) == (
        "failed-call-id",
        "error",
        "API connection timeout",
    )


def test_serialization() -> None:
    message = basic_message()
    # Convert to dictionary
    message_dict = message.to_dict()

    # Convert to JSON string
    json_str = message.to_json()

    # Recreate from dictionary
    reconstructed_msg = StructuredMessage.from_dict(message_dict)
    assert reconstructed_msg == message

    # Recreate from JSON
    reconstructed_msg = StructuredMessage.from_json(json_str)
    assert reconstructed_msg == message


def test_task_assignment() -> None:
    # Create a task assignment
    task_msg = StructuredMessage.create_task(
        content="Analyze the sentiment of these customer reviews",
        source_agent="controller",
        target_agent="sentiment_analysis_worker",
        task_data={"priority": "high", "deadline": "2h"},
    )
    assert task_msg.metadata == {"type": MessageType.TASK, "priority": "high", "deadline": "2h"}
    assert (task_msg.source_agent, task_msg.target_agent) == ("controller", "sentiment_analysis_worker")


def test_integration_with_tool_capable_agents() -> None:
    message = basic_message()
    call_id = message.add_tool_call("get_weather", {"location": "New York"})
    # Create toolkit with tools
    toolkit = AgentToolkit()
    # ... register tools and permissions ...
    toolkit.register_tool(get_weather)
    toolkit.grant_permission("research_agent", "get_weather")

    # Create tool-capable agent
    agent = ToolCapableAgent(
        worker_id="research_agent",
        specialization="Information Research",
        toolkit=toolkit,
        model=Script([call("get_weather", location="London"), "Sunny in both."]),
    )

    # Process a message with tool calls
    response = agent.process_structured_message(message)

    # Any tool calls in the agent's response will be executed
    # and results added to the response message
    assert response.content == "Sunny in both."
    assert [each["result"]["location"] for each in response.tool_results] == ["New York", "London"]
    assert response.tool_results[0]["call_id"] == call_id
    assert response.metadata["in_reply_to"] == message.task_id
