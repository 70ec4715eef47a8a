#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Expected logits of tests/nn/checkpoints: tiny models of transformers (5.24 gave the values there), whose parameters follow a formula.

    python3 scripts/goldens_transformers.py [FOLDER]    prints a line for each; with a folder also saves the models there
"""
import sys

import torch
import transformers as T

SMALL = dict(vocab_size=20, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             max_position_embeddings=32)
BERT = {key: value for key, value in SMALL.items() if key != "num_key_value_heads"}
MODELS = {
    "llama": T.LlamaForCausalLM(T.LlamaConfig(**SMALL, rms_norm_eps=1e-3, rope_parameters={"rope_type": "default", "rope_theta": 100.0},
                                              tie_word_embeddings=False)),
    "llama_bias": T.LlamaForCausalLM(T.LlamaConfig(**SMALL, attention_bias=True, tie_word_embeddings=True)),
    "mistral": T.MistralForCausalLM(T.MistralConfig(**SMALL, head_dim=8, sliding_window=16, tie_word_embeddings=True)),
    "qwen2": T.Qwen2ForCausalLM(T.Qwen2Config(**SMALL, tie_word_embeddings=True)),
    "qwen2_window": T.Qwen2ForCausalLM(T.Qwen2Config(**SMALL, tie_word_embeddings=True, use_sliding_window=True, sliding_window=3, max_window_layers=1)),
    "llama_llama3": T.LlamaForCausalLM(T.LlamaConfig(**SMALL, tie_word_embeddings=True, rope_parameters={
        "rope_type": "llama3", "rope_theta": 10000.0, "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 16})),
    "llama_yarn": T.LlamaForCausalLM(T.LlamaConfig(**SMALL, tie_word_embeddings=True, rope_parameters={
        "rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 8})),
    **{"llama_longrope%d" % original: T.LlamaForCausalLM(T.LlamaConfig(**SMALL, tie_word_embeddings=True, rope_parameters={
        "rope_type": "longrope", "rope_theta": 100.0, "short_factor": [1.0, 1.5], "long_factor": [2.0, 6.5],
        "original_max_position_embeddings": original})) for original in (4, 16)},  # of 7 tokens: the long divisors, the short ones
    "bert": T.BertForMaskedLM(T.BertConfig(**BERT)),
    "distilbert": T.DistilBertForMaskedLM(T.DistilBertConfig(vocab_size=20, dim=16, hidden_dim=24, n_layers=2, n_heads=4, max_position_embeddings=32)),
    "gpt2": T.GPT2LMHeadModel(T.GPT2Config(vocab_size=20, n_embd=16, n_layer=2, n_head=4, n_positions=32, bos_token_id=1, eos_token_id=1)),
}

for name, model in MODELS.items():
    model.eval()
    unique = dict(model.named_parameters())  # shared ones once
    for k, key in enumerate(sorted(unique)):
        p = unique[key].data
        i = torch.arange(p.numel(), dtype=torch.float64)
        p.copy_(((i * 37 + k * 101) % 199 - 99).div(300).reshape(p.shape))
    ids = torch.tensor([[(b * 11 + t) * 13 % 20 for t in range(7)] for b in range(2)])
    more = {}
    if "bert" in name:  # padding after 7 and 4 tokens
        more["attention_mask"] = torch.tensor([[1] * 7, [1] * 4 + [0] * 3])
    if name == "bert":
        more["token_type_ids"] = torch.tensor([[0] * 3 + [1] * 4] * 2)
    with torch.no_grad():
        y = model(ids, **more).logits.double().flatten()
    weights = 1 + torch.arange(len(y)) % 13
    print(name, " ".join("%.8g" % y[i] for i in (0, 1, 50, 137, 279)), "%.8g" % (y * weights).sum())
    if len(sys.argv) > 1:
        model.save_pretrained(sys.argv[1] + "/" + name)
