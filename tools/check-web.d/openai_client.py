"""The service through the real `openai` client: every call that a client makes, with assertions.

usage: openai_client.py ADDRESS      the service runs under the policy default-on, with an alias
"""

import sys

import openai

address = sys.argv[1]
client = openai.OpenAI(base_url=f"{address}/v1", api_key="unused", max_retries=0)
PROMPT = "The lighthouse keeper opened the door and"
done = 0


def check(what, condition):
    global done
    assert condition, what
    done += 1


def refused(kind, param, **fields):
    try:
        client.completions.create(model=model, prompt=PROMPT, **fields)
    except kind as error:
        check(f"{fields}: {error}", error.param == param)
        return error
    raise AssertionError(f"{fields} was accepted")


models = client.models.list().data
model = models[0].id
check("the model by its name", client.models.retrieve(model).id == model)
for other in models[1:]:
    reply = client.completions.create(model=other.id, prompt=PROMPT, max_tokens=1)
    check("an alias", reply.model == model)


def complete(**fields):
    fields = {"model": model, "prompt": PROMPT, "seed": 7, "max_tokens": 24} | fields
    return client.completions.create(**fields)


plain = complete()
text = plain.choices[0].text
check("usage", plain.usage.completion_tokens == 24 and plain.usage.prompt_tokens > 4)
check("ids", plain.id.startswith("cmpl-") and plain.system_fingerprint.startswith("greenmark-"))
check("the mark", plain.greenmark["watermarked"] is True and len(plain.greenmark["expected"]) == 1)
check("seed", complete().choices[0].text == text and complete(seed=8).choices[0].text != text)
check("n", len({choice.text for choice in complete(n=3).choices}) == 3)
word = text.split()[2]
stopped = complete(stop=[word])
check("stop", stopped.choices[0].finish_reason == "stop" and word not in stopped.choices[0].text)
check("echo", complete(echo=True).choices[0].text == PROMPT + text)
check("best_of", complete(best_of=1).choices[0].text == text)
scored = complete(logprobs=3).choices[0].logprobs
check("logprobs", len(scored.tokens) == 24 and "".join(scored.tokens) == text)
check("top_logprobs", all(3 <= len(top) <= 4 for top in scored.top_logprobs))
check("offsets", all(text[at:].startswith(token) for at, token in zip(scored.text_offset, scored.tokens)))
lists = complete(prompt=[PROMPT, "Once upon a time"])
check("prompts", lists.choices[0].text == text and lists.choices[1].index == 1)
check("temperature", complete(temperature=0).choices[0].text == complete(temperature=0, seed=9).choices[0].text)
check("logit_bias", complete(logit_bias={"28": 100}, max_tokens=4).choices[0].text.count(
    complete(logit_bias={"28": 100}, max_tokens=1).choices[0].text) == 4)
for field in [{"frequency_penalty": 2}, {"presence_penalty": 2}, {"top_p": 0.1}]:
    check(field, complete(**field).choices[0].text != text)
for extra in [{"top_k": 2}, {"min_p": 0.5}, {"repetition_penalty": 1.9}, {"typical_p": 0.2},
              {"mirostat": {"mode": 2, "tau": 0.5}}, {"order": "llama.cpp", "top_k": 2}]:
    check(extra, complete(extra_body=extra).choices[0].text != text)
bare = complete(extra_body={"watermark": False})
check("watermark", bare.greenmark == {"watermarked": False} and bare.choices[0].text != text)
check("user", complete(user="someone").choices[0].text == text)

stream = list(complete(stream=True, stream_options={"include_usage": True}))
check("stream", "".join(c.text for chunk in stream for c in chunk.choices) == text)
check("stream usage", stream[-1].usage.completion_tokens == 24 and not stream[-1].choices)
check("stream mark", stream[-1].greenmark["profile"] == plain.greenmark["profile"])
check("stream end", stream[-2].choices[0].finish_reason == "length")
left = complete(stream=True, max_tokens=400)
next(iter(left))
left.close()

MESSAGES = [
    {"role": "developer", "content": "Answer in one sentence."},
    {"role": "user", "content": [{"type": "text", "text": "Why is the sky blue?"}]},
]


def chat(**fields):
    fields = {"model": model, "messages": MESSAGES, "seed": 7, "max_completion_tokens": 24} | fields
    return client.chat.completions.create(**fields)


said = chat()
answer = said.choices[0].message.content
check("chat", said.choices[0].message.role == "assistant" and said.usage.completion_tokens <= 24)
check("chat id", said.id.startswith("chatcmpl-") and said.object == "chat.completion")
entries = chat(logprobs=True, top_logprobs=2).choices[0].logprobs.content
check("chat logprobs", bytes(b for e in entries for b in e.bytes).decode("utf-8", "replace") == answer)
check("chat top_logprobs", all(len(entry.top_logprobs) == 2 for entry in entries))
check("chat n", len(chat(n=2).choices) == 2)
pieces = list(chat(stream=True))
check("chat stream", "".join(c.delta.content or "" for p in pieces for c in p.choices) == answer)
check("chat role", pieces[0].choices[0].delta.role == "assistant")
check("chat mark", pieces[-1].greenmark["watermarked"] is True)
check("response_format", chat(response_format={"type": "text"}).choices[0].message.content == answer)
more = MESSAGES + [said.choices[0].message.to_dict(), {"role": "user", "content": "And at night?"}]
check("the reply as a message", chat(messages=more).usage.prompt_tokens > said.usage.prompt_tokens)

refused(openai.BadRequestError, "n", n=1000)
refused(openai.BadRequestError, "suffix", suffix="x")
refused(openai.BadRequestError, "stop", stop=[""])
refused(openai.BadRequestError, "max_completion_tokens", max_tokens=2, extra_body={"max_completion_tokens": 1})
refused(openai.BadRequestError, "delta", extra_body={"delta": 0})
refused(openai.BadRequestError, "extra_body", extra_body={"extra_body": {"delta": 0}})
refused(openai.BadRequestError, "profile", extra_body={"profile": "none"})
check("too long", refused(openai.BadRequestError, None, max_tokens=10**6).code == "context_length_exceeded")
for fields in [{"tools": [{"type": "function", "function": {"name": "f"}}]}, {"response_format": {"type": "json_object"}},
               {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]}]:
    try:
        chat(**fields)
    except openai.BadRequestError as error:
        check(fields, error.param)
    else:
        raise AssertionError(fields)
try:
    client.completions.create(model="nothing", prompt="x")
except openai.NotFoundError as error:
    check("no such model", error.code == "model_not_found")
print(f"openai {openai.__version__}: {done} checks passed")
