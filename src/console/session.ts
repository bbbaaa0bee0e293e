/** In whose name the console makes requests. */
import { signal } from '@preact/signals';
import { changeParams, chosenTenant } from './address.ts';
import { send, whenUnauthenticated } from './client.ts';
import type { Role, SessionItem, SignedOut } from './types.ts';

/** undefined until the service has said it. */
export const session = signal<SessionItem | undefined>(undefined);

/** What the holder of each role may do; the console shows no button that would be refused. */
const MAY: Readonly<Record<Role, readonly string[]>> = {
  read: ['read'],
  add: ['add'],
  write: ['read', 'add', 'write'],
  admin: ['read', 'add', 'write', 'admin'],
};

/** Whether the caller may do what needs this role. */
export function may(access: 'read' | 'add' | 'write' | 'admin'): boolean {
  const role = session.value?.caller?.role;
  return role !== undefined && MAY[role].includes(access);
}

/** Whether the caller's key is bound to a user or tags, and so sees a part of the tenant only. */
export function isBound(): boolean {
  const caller = session.value?.caller;
  return caller != null && (caller.user_id !== null || caller.tags.length > 0);
}

/** The tenant that requests are about; '' until it is known. */
export function presentTenant(): string {
  return chosenTenant.value ?? session.value?.caller?.tenant ?? '';
}

/** Whether the caller administers the whole service: an admin whose requests are about the default tenant. */
export function isOperator(): boolean {
  return may('admin') && presentTenant() === 'default';
}

/** Asks the service who the caller is. Throws Refusal. */
export async function loadSession(): Promise<void> {
  session.value = await send<SessionItem>('GET', '/console/session', { isOfNone: true });
}

/** Exchanges a key for a session. Throws Refusal. */
export async function signIn(key: string): Promise<void> {
  session.value = await send<SessionItem>('POST', '/console/session', { body: { key }, isOfNone: true });
}

const VIEW = 'cairn-view';

/** Keeps the address of the view while the browser is at an identity provider, which is not told of it. */
export function rememberView(): void {
  if (!location.hash.startsWith('#/sign-in')) sessionStorage.setItem(VIEW, location.hash);
}

/** Returns the address that was kept, once. */
export function takeRememberedView(): string | null {
  const view = sessionStorage.getItem(VIEW);
  sessionStorage.removeItem(VIEW);
  return view;
}

/** Ends the session. */
export async function signOut(): Promise<void> {
  changeParams({ tenant: '' }, { replace: true });
  const { sign_out_url: url, ...rest } = await send<SignedOut>('DELETE', '/console/session', { isOfNone: true });
  session.value = rest;
  // Whoever signed in at an identity provider is signed out there, too, before somebody else sits down.
  if (url !== null) location.assign(url);
}

whenUnauthenticated(() => {
  if (session.value?.caller != null) session.value = { ...session.value, has_session: false, caller: null };
});
