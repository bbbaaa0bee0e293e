/**
 * The address of a view, after the `#`: `#/ask?query=…`. Browsers do not send this part to a server, so neither a
 * question nor an id in a shared address reaches the log of a proxy.
 */
import { computed, signal } from '@preact/signals';

/** The view that the console shows, as the part of its address behind `#/` says it. */
export interface Address {
  /** First segment of the path, such as `ask`. */
  readonly page: string;
  /** The other segments, decoded. */
  readonly rest: readonly string[];
  readonly params: URLSearchParams;
}

/** Parameters of an address, behind `?`. Those that are undefined, null or empty are left out of it. */
export type Params = Readonly<Record<string, string | number | undefined | null>>;

/** The present address of the console; it changes with that of the browser. */
export const address = signal(readAddress());
addEventListener('hashchange', () => (address.value = readAddress()));
/** The tenant that requests are about; undefined for the first of the key. It is shared with the address. */
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
 * Returns the `href` of a view. Parameters that are undefined, null or empty are left out. The view is of the tenant
 * of the present one unless the parameters name another.
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

/** Shows another view. With `replace` the present one is not kept in the browser's history. */
export function go(href: string, { replace = false } = {}): void {
  if (replace) {
    history.replaceState(null, '', href);
    address.value = readAddress();
  } else location.hash = href.slice(1);
}

/** Changes parameters of the present address; an empty value removes one. */
export function changeParams(changes: Params, options?: { readonly replace?: boolean }): void {
  const { page, rest, params } = address.value;
  const next = new URLSearchParams(params);
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined || value === null || value === '') next.delete(name);
    else next.set(name, String(value));
  }
  go(hrefOf([page, ...rest], next), options);
}
