"""The manifests of the documentation, with processes that receive the probes and signals of kubelet and systemd."""
