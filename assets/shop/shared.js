// The code of shop.js that the other scripts of a page use. The page has loaded shop.js, so this import sends no request.
// Bundled instead, the code would be loaded twice.

const shop = await import(document.querySelector('[data-shop]').src);

export const {
  attempt, cardItem, cards, changeCart, clock, createClient, edge, element, errorMessage, forEach, formatDuration, formatMoney, formatTime, picture, price, showCartCount, showToast,
} = shop;
