"""What the model lacks, learnt from logs: τ = τ_model + τ_NN(q, q̇, q̈)."""
from .network import Residual, model_digest

__all__ = ["Residual", "model_digest"]
