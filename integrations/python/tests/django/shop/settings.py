import os

SECRET_KEY = "a key for tests"
ROOT_URLCONF = "shop.urls"
ALLOWED_HOSTS = ["shop.example", "127.0.0.1", "testserver"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": os.environ["SHOP_DATABASE"], "ATOMIC_REQUESTS": True}}
TEMPLATES = [{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True, "OPTIONS": {
    "context_processors": ["django.template.context_processors.request", "django.contrib.auth.context_processors.auth"]}}]  # fmt: skip
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
USE_TZ = True
LOGIN_REDIRECT_URL = LOGOUT_REDIRECT_URL = "/account/"
INSTALLED_APPS = ["django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions", "shop"]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
]

# The settings of edgefront: these lines are the README's.
EDGEFRONT = {
    "ORIGIN_KEY": os.environ["ORIGIN_KEY"],
    "SERVICE_KEY": os.environ["SERVICE_KEY"],
    "URL": os.environ["SHOP_URL"],
    "PURGE": {"shop.Product": lambda product: {"items": [product.slug]}},
}
INSTALLED_APPS += ["edgefront.django"]
MIDDLEWARE.insert(0, "edgefront.django.EdgeMiddleware")
MIDDLEWARE.append("edgefront.django.AuthenticationMiddleware")  # in place of Django's own
