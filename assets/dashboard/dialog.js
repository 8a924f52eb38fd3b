// Dialogs. The browser traps the focus, closes a dialog on Escape, and returns the focus to the button that opened it.
// If a table was drawn again meanwhile, that button is gone: then the button with the same `data-key` gets the focus.

const confirmation = document.querySelector('[data-confirm]');

/** Opens a dialog. Resolves with its return value when it closes; Escape gives ''. */
export function open(dialog) {
  const opener = document.activeElement;
  dialog.returnValue = '';
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener('close', () => {
      if (!opener.isConnected) refocus(opener.dataset.key);
      resolve(dialog.returnValue);
    }, { once: true });
  });
}

/** Focuses the element with this `data-key`; the page's main part if there is none. */
export function refocus(key) {
  const again = key && document.querySelector(`[data-key="${CSS.escape(key)}"]`);
  (again || document.querySelector('#main')).focus({ preventScroll: true });
}

/** Asks for confirmation. `action` is the label of the button that confirms. Resolves with true or false. */
export async function confirm({ title, text, action }) {
  confirmation.querySelector('h2').textContent = title;
  confirmation.querySelector('p').textContent = text;
  confirmation.querySelector('[data-close=confirm]').textContent = action;
  return (await open(confirmation)) === 'confirm';
}

for (const button of document.querySelectorAll('dialog [data-close]')) {
  button.addEventListener('click', () => button.closest('dialog').close(button.dataset.close));
}
