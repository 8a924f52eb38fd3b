// Durations and times of flash sales.

const SECOND = 1000;

/** Monotonic time in milliseconds: changes of the visitor's clock do not affect it. */
export const clock = () => performance.now();

/** Formats a duration: `3 d 04:05:06`, `04:05:06` or `5:06`. */
export function formatDuration(milliseconds) {
  const seconds = Math.max(0, Math.ceil(milliseconds / SECOND));
  const two = (number) => String(number).padStart(2, '0');
  const [days, hours, minutes] = [Math.floor(seconds / 86400), Math.floor(seconds / 3600) % 24, Math.floor(seconds / 60) % 60];
  if (days === 0 && hours === 0) return `${minutes}:${two(seconds % 60)}`;
  return `${days > 0 ? `${days} d ` : ''}${two(hours)}:${two(minutes)}:${two(seconds % 60)}`;
}

/** Formats a time in the visitor's time zone, with a date as the server formats it: `26 Nov 2026, 10:38`. */
export const formatTime = new Intl.DateTimeFormat('en-IE', { dateStyle: 'medium', timeStyle: 'short' }).format;

/** Shows a time in the visitor's time zone. */
export function showLocalTime(time) {
  time.textContent = formatTime(time.dataset.time * SECOND);
}
