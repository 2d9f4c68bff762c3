include src/sock/local.mk
