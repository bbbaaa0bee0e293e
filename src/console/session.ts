/** The session of the console: who the caller is, and what the caller may do. */
import { signal } from '@preact/signals';
import { changeParams, chosenTenant } from './address.ts';
import { send, whenUnauthenticated } from './client.ts';
import type { Role, SessionItem, SignedOut } from './types.ts';

/** The caller and its session; undefined until the service has answered. */
export const session = signal<SessionItem | undefined>(undefined);

/**
 * For each role, the `access` of the routes that its holder may call. The console shows no button whose request would
 * be refused.
 */
const MAY: Readonly<Record<Role, readonly string[]>> = {
  read: ['read'],
  add: ['add'],
  write: ['read', 'add', 'write'],
  admin: ['read', 'add', 'write', 'admin'],
};

/** Tells whether the caller may call routes with this access. */
export function may(access: 'read' | 'add' | 'write' | 'admin'): boolean {
  const role = session.value?.caller?.role;
  return role !== undefined && MAY[role].includes(access);
}

/** Tells whether the caller's key is bound to a user or to tags, so that it may use only a part of the tenant. */
export function isBound(): boolean {
  const caller = session.value?.caller;
  return caller != null && (caller.user_id !== null || caller.tags.length > 0);
}

/** Returns the id of the tenant in which requests act; '' until it is known. */
export function presentTenant(): string {
  return chosenTenant.value ?? session.value?.caller?.tenant ?? '';
}

/** Tells whether the caller is an operator, who administers the whole service: an admin in the default tenant. */
export function isOperator(): boolean {
  return may('admin') && presentTenant() === 'default';
}

/**
 * Reads from the service who the caller is.
 * @throws Refusal if the service does not answer or refuses the request
 */
export async function loadSession(): Promise<void> {
  session.value = await send<SessionItem>('GET', '/console/session', { omitsTenant: true });
}

/**
 * Exchanges a key for a session.
 * @throws Refusal for a wrong key, for a key that may not read, and if the service does not answer
 */
export async function signIn(key: string): Promise<void> {
  session.value = await send<SessionItem>('POST', '/console/session', { body: { key }, omitsTenant: true });
}

const VIEW = 'cairn-view';

/**
 * Stores the address of the view in this browser tab while the user is at an identity provider, which does not learn
 * it.
 */
export function rememberView(): void {
  if (!location.hash.startsWith('#/sign-in')) sessionStorage.setItem(VIEW, location.hash);
}

/** Returns the stored address and removes it; null if there is none. */
export function takeRememberedView(): string | null {
  const view = sessionStorage.getItem(VIEW);
  sessionStorage.removeItem(VIEW);
  return view;
}

/**
 * Ends the session. A user who signed in at an identity provider is then sent there to be signed out as well.
 * @throws Refusal if the service does not answer or refuses the request; the session then goes on
 */
export async function signOut(): Promise<void> {
  changeParams({ tenant: '' }, { replace: true });
  const { sign_out_url: url, ...rest } = await send<SignedOut>('DELETE', '/console/session', { omitsTenant: true });
  session.value = rest;
  // Whoever signed in at an identity provider is signed out there as well, before another person uses the browser.
  if (url !== null) location.assign(url);
}

whenUnauthenticated(() => {
  if (session.value?.caller != null) session.value = { ...session.value, has_session: false, caller: null };
});
