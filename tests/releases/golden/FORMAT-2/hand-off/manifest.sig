{
 "algorithm": "ed25519",
 "public_key": "t3yhp0eB+nT2XQnC9L0aM898kGRt/UJYZEa+EzyBa3Y=",
 "signature": "xu+IlKjJZTFvJZ7mG73Lpn3zDZy5xjbva4oZ5OyLfh+YFB9O64ggMadnUo27QiV0JlHlXOeXO1FlHduylAxSAQ=="
}