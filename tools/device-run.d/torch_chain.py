"""The sampling chain as PyTorch programs write it, at the shapes of `benches/gpu`, timed by CUDA events.

Appends JSON lines to the file named as the only argument; prints a table. Exit status 77: no PyTorch or no GPU.
"""

import json
import sys

VOCABS = (128_256, 151_936)
BATCHES = (1, 8, 64, 128, 256)
SAMPLES = 50
LAUNCHES = 8
PROMPT = 500
# More than the L2 cache of an H200 holds.
POOL_ROWS = 512


def draw(torch, logits):
    return torch.multinomial(torch.softmax(logits, dim=-1), 1)


def keep_top_p(torch, ordered, p):
    """Rows in descending order, without what stands behind the shortest prefix of mass p."""
    probabilities = torch.softmax(ordered, dim=-1)
    before = probabilities.cumsum(dim=-1) - probabilities
    return ordered.masked_fill(before >= p, float("-inf"))


def top_p(torch, logits, _counts):
    ordered, ids = logits.sort(dim=-1, descending=True)
    return ids.gather(1, draw(torch, keep_top_p(torch, ordered, 0.95)))


def top_k_top_p(torch, logits, _counts, k=50):
    ordered, ids = logits.topk(k, dim=-1)
    return ids.gather(1, draw(torch, keep_top_p(torch, ordered, 0.95)))


def full(torch, logits, counts):
    """Without the typical member, so a little less than what the kernels do."""
    repeated = torch.where(logits < 0, logits * 1.1, logits / 1.1)
    logits = torch.where(counts > 0, repeated, logits) - 0.1 * counts
    ordered, ids = (logits / 0.8).topk(100, dim=-1)
    kept = keep_top_p(torch, ordered, 0.95)
    probabilities = torch.softmax(kept, dim=-1)
    kept = kept.masked_fill(probabilities < 0.02 * probabilities[:, :1], float("-inf"))
    return ids.gather(1, draw(torch, kept))


SETTINGS = (
    ("none", lambda torch, logits, _counts: draw(torch, logits)),
    ("top-p", top_p),
    ("top-k, top-p", top_k_top_p),
    ("full", full),
)


def median_microseconds(torch, work):
    for index in range(LAUNCHES):
        work(index)
    times = []
    for sample in range(SAMPLES):
        before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        before.record()
        for launch in range(LAUNCHES):
            work(sample * LAUNCHES + launch)
        after.record()
        after.synchronize()
        times.append(before.elapsed_time(after) * 1e3 / LAUNCHES)
    return sorted(times)[len(times) // 2]


def main():
    try:
        import torch
    except ImportError:
        print("no PyTorch")
        return 77
    if not torch.cuda.is_available():
        print("PyTorch sees no GPU")
        return 77
    torch.manual_seed(1)
    print(f"PyTorch {torch.__version__}, microseconds a step\n  vocab   rows  setting          median")
    with open(sys.argv[1], "a", encoding="utf-8") as results:
        for vocab in VOCABS:
            pool = 2.4 * torch.randn(POOL_ROWS, vocab, device="cuda")
            pool[:, ::6000] += 12
            for rows in BATCHES:
                batches = pool.split(rows)
                counts = torch.zeros(rows, vocab, device="cuda")
                counts[:, :PROMPT] = 1
                for name, setting in SETTINGS:
                    median = median_microseconds(
                        torch, lambda index: setting(torch, batches[index % len(batches)], counts)
                    )
                    line = {"bench": "torch", "vocab": vocab, "rows": rows, "setting": name, "median_us": median}
                    results.write(json.dumps(line) + "\n")
                    results.flush()
                    print(f"{vocab:>7}  {rows:>5}  {name:<14} {median:>8.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
