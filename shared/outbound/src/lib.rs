//! Outbound HTTP that cannot be led astray: the address guard and the client that obeys it
