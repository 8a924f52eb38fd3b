from django.db import models


class Product(models.Model):
    slug = models.SlugField(unique=True)
    stock = models.IntegerField(default=0)
    price = models.DecimalField(max_digits=8, decimal_places=2, default=0)
