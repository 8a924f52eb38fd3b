// The service's part of the API, with the key that the operator gave. It stays in this tab's session storage and is sent to this origin only.

const API = '/_edge/v1';
const PLACE = 'edgefront.service-key';

/** The operator can help: what was asked is wrong. */
export class Refused extends Error {}
/** The key is wrong. */
export class Locked extends Refused {}
/** Nobody can now; later it may work. */
export class Unavailable extends Error {}

export const hasKey = () => sessionStorage.getItem(PLACE) !== null;
export const forgetKey = () => sessionStorage.removeItem(PLACE);

export function useKey(text) {
  const key = text.trim();
  if (!key) throw new Refused('Please type the key.');
  // Anything else could not stand in a header.
  if (!/^[\x21-\x7e]+$/.test(key)) throw new Refused('A key has no spaces, and only letters, digits and signs of ASCII.');
  sessionStorage.setItem(PLACE, key);
}

/** Resolves with the answer's JSON. Throws Refused (or Locked) or Unavailable, whose message an operator can read. */
export async function call(path, { signal } = {}) {
  const headers = { Accept: 'application/json', Authorization: `Bearer ${sessionStorage.getItem(PLACE)}` };
  let response;
  let answer;
  try {
    // Longer than Redis may take: whoever does not answer then will not.
    const late = AbortSignal.timeout(15_000);
    response = await fetch(API + path, { headers, cache: 'no-store', signal: signal ? AbortSignal.any([signal, late]) : late });
    answer = await response.json();
  } catch {
    throw new Unavailable(response ? `edgefront answered strangely (status ${response.status}).` : 'edgefront does not answer.');
  }
  if (response.ok) return answer;
  if (response.status === 401) {
    throw new Locked(answer.detail?.includes('SERVICE_KEY') ? 'SERVICE_KEY is not set here: nobody can open the dashboard.' : 'This is not the service key.');
  }
  if (response.status === 503) throw new Unavailable('Redis does not answer.');
  if (response.status >= 500) throw new Unavailable(`edgefront failed (status ${response.status}).`);
  throw new Refused(`${answer.detail ?? answer.title}.`);
}
