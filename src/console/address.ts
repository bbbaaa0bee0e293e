/**
 * The address of a view, which is the part of the URL after `#`, such as `#/ask?query=…`. Browsers do not send this
 * part to a server, so neither a query nor an id in a shared address reaches the log of a proxy.
 */
import { computed, signal } from '@preact/signals';

/** The view that the console shows, as its address after `#/` names it. */
export interface Address {
  /** First segment of the path, such as `ask`; '' if there is none. */
  readonly page: string;
  /** Segments of the path after the first, decoded. */
  readonly rest: readonly string[];
  readonly params: URLSearchParams;
}

/** Parameters of an address, after `?`. Parameters that are undefined, null or empty are left out of the address. */
export type Params = Readonly<Record<string, string | number | undefined | null>>;

/** The present address of the console. It follows that of the browser. */
export const address = signal(readAddress());
addEventListener('hashchange', () => (address.value = readAddress()));
/**
 * Id of the tenant in which requests act; undefined for the first tenant of the key. It is part of the address, so a
 * person who opens a shared address sees the same tenant.
 */
export const chosenTenant = computed(() => address.value.params.get('tenant') ?? undefined);

function readAddress(): Address {
  const [path = '', query = ''] = location.hash.replace(/^#\/?/, '').split('?');
  const [page = '', ...rest] = path.split('/').map(decoded);
  return { page, rest, params: new URLSearchParams(query) };
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/**
 * Returns the `href` of a view. Parameters that are undefined, null or empty are left out. The view keeps the present
 * tenant unless `params` names another, or is a `URLSearchParams`, which is used as it is.
 */
export function hrefOf(segments: string | readonly string[], params: Params | URLSearchParams = {}): string {
  const path = (typeof segments === 'string' ? [segments] : segments).map(encodeURIComponent).join('/');
  const given = params instanceof URLSearchParams ? params : paramsOf({ tenant: chosenTenant.value, ...params });
  const query = given.toString();
  return `#/${path}${query === '' ? '' : `?${query}`}`;
}

function paramsOf(params: Params): URLSearchParams {
  const entries = Object.entries(params).filter(([, value]) => value !== undefined && value !== null && value !== '');
  return new URLSearchParams(entries.map(([name, value]) => [name, String(value)]));
}

/** Opens another view. With `replace` the present one does not stay in the browser's history. */
export function go(href: string, { replace = false } = {}): void {
  if (replace) history.replaceState(null, '', href);
  else location.hash = href.slice(1);
  // At once: Enter in a field changes a parameter and sends the form, and the second must not undo the first.
  address.value = readAddress();
}

/** Changes parameters of the present address; an empty, null or undefined value removes one. */
export function changeParams(changes: Params, options?: { readonly replace?: boolean }): void {
  const { page, rest, params } = address.value;
  const next = new URLSearchParams(params);
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined || value === null || value === '') next.delete(name);
    else next.set(name, String(value));
  }
  go(hrefOf([page, ...rest], next), options);
}
