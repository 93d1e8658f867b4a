{
 "algorithm": "ed25519",
 "public_key": "UX1yj05f8hTpZkX/vd/9uC2t2ZOyOX5ZmeS7A8RN9Tw=",
 "signature": "AcmkHYWLoq/iR4jg4SX3p9QguL8tB88KYIgTtUz+dIQ83GD9alcWvMa9O+Rh3m3CF97Nd01oIoKr2lEtT/miBw=="
}