from django.contrib import auth
from django.contrib.auth.models import User
from django.contrib.auth.views import LoginView, LogoutView, PasswordChangeView
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template import engines
from django.urls import path
from django.views.decorators.csrf import csrf_exempt

from edgefront.django import rows, shared

from .models import Product


def page(request, template, **context):
    return HttpResponse(engines["django"].from_string(template).render(context, request))


@shared(max_age=300)
def product(request, slug):
    found = get_object_or_404(Product, slug=slug)
    request.edge.item(found.slug)
    request.edge.tags("products")
    return page(request, "<link rel=canonical href='{{ url }}'>{{ stock }}", url=request.build_absolute_uri(), stock=found.stock)


@shared()
def personal(request, kind):
    """A view that is declared shared by mistake."""
    if kind == "user":
        return page(request, "{{ user.username }}")
    if kind == "session":
        return page(request, "{{ request.session.name }}")
    if kind == "form":
        return page(request, "<form>{% csrf_token %}</form>")
    return HttpResponse("error", status=500)


def account(request):
    return page(
        request,
        "{% if user.is_authenticated %}Hello {{ user.username }}!{% endif %} {{ request.META.REMOTE_ADDR }}"
        "<form method=post action=/logout/>{% csrf_token %}</form>",
    )


def cart(request):
    if request.method == "POST":
        request.edge.cart.add(request.POST["id"], 2)
        return redirect("/cart/")
    return page(request, "{{ request.edge.cart_items }}")


def checkout(request):
    if request.method == "POST":
        request.edge.order("A-1", request.edge.cart_items)
        return redirect("/")
    return page(request, "<form method=post>{% csrf_token %}</form>")


@csrf_exempt
def stock(request):
    for _ in range(3):
        for found in Product.objects.all():
            found.stock += 1
            found.save()
    if request.GET.get("fail"):
        raise RuntimeError("the transaction rolls back")
    return HttpResponse()


@csrf_exempt
def reset(request):
    """Sets the passwords of users, as a link in an email does. It may sign the last user in, or the visitor out."""
    for name in request.POST.getlist("name"):
        user = User.objects.get(username=name)
        user.set_password(request.POST["password"])
        user.save()
    if "login" in request.POST:
        auth.login(request, user)
    if "logout" in request.POST:
        auth.logout(request)
    return HttpResponse()


def row(product):
    return {"id": product.slug, "stock": product.stock, "price": product.price}


LOGIN = "<form method=post>{% csrf_token %}{{ form }}</form>"


class Login(LoginView):
    def render_to_response(self, context, **_):
        return page(self.request, LOGIN, **context)


urlpatterns = [
    path("", lambda request: HttpResponse("shop")),
    path("products/<slug:slug>/", product),
    path("personal/<slug:kind>/", personal),
    path("account/", account),
    path("login/", Login.as_view()),
    path("logout/", LogoutView.as_view()),
    path("password/", PasswordChangeView.as_view(success_url="/account/")),
    path("reset/", reset),
    path("cart/", csrf_exempt(cart)),
    path("checkout/", checkout),
    path("stock/", stock),
    path("edge/rows", rows(lambda ids: (row(product) for product in Product.objects.filter(slug__in=ids)))),
]
