//! What tests share: databases, fake servers, a breakable proxy
