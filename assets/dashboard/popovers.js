// Opens each popover at its button: below it, or above it if there is no room below.

const MARGIN = 8;

for (const button of document.querySelectorAll('[popovertarget]')) {
  const popover = document.getElementById(button.getAttribute('popovertarget'));
  // The size of a popover is known only once it is open, so the second event corrects the place.
  for (const event of ['beforetoggle', 'toggle']) {
    popover.addEventListener(event, ({ newState }) => {
      if (newState === 'open') place(popover, button.getBoundingClientRect());
    });
  }
}

function place(popover, anchor) {
  const { offsetWidth: width, offsetHeight: height } = popover;
  const { clientHeight, clientWidth, scrollWidth, scrollLeft, scrollTop } = document.documentElement;
  // The reserved place of the scroll bar counts for clientWidth only.
  const left = Math.max(MARGIN, Math.min(anchor.left, Math.min(clientWidth, scrollWidth) - width - MARGIN));
  const below = anchor.bottom + MARGIN;
  const top = below + height < clientHeight ? below : Math.max(MARGIN, anchor.top - height - MARGIN);
  // Places of the page, so that the popover scrolls with its button.
  Object.assign(popover.style, { left: `${left + scrollLeft}px`, top: `${top + scrollTop}px` });
}
