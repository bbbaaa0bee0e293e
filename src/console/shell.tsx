import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { address, changeParams, hrefOf } from './address.ts';
import { isUp } from './client.ts';
import logo from './cairn.svg';
import { centre } from './parts/centre.ts';
import { Icon, type IconName } from './parts/icons.tsx';
import { sayRefusal, Toast } from './parts/toast.tsx';
import { may, presentTenant, session, signOut } from './session.ts';
import { texts } from './texts.ts';

interface Place {
  readonly page: IconName;
  readonly access: 'read' | 'admin';
}

const PLACES: readonly Place[] = [
  { page: 'ask', access: 'read' },
  { page: 'browse', access: 'read' },
  { page: 'documents', access: 'read' },
  { page: 'graph', access: 'read' },
  { page: 'standing', access: 'read' },
  { page: 'decay', access: 'admin' },
  { page: 'evals', access: 'admin' },
  { page: 'work', access: 'read' },
  { page: 'admin', access: 'admin' },
];

const THEME = 'cairn-theme';
const theme = signal(localStorage.getItem(THEME) ?? 'auto');

/** Applies the theme that the user chose earlier; without a choice, that of the system. */
export function applyTheme(): void {
  if (theme.value === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme.value;
}

function chooseTheme(next: string): void {
  theme.value = next;
  localStorage.setItem(THEME, next);
  applyTheme();
}

/**
 * Shows the page without navigation while the caller is not known yet. It looks like `index.html` before this script
 * has loaded.
 */
export function Frame({ children }: { children: ComponentChildren }) {
  return (
    <div class="shell">
      <header class="side">
        <span class="brand">
          <img src={logo} alt="" />
          Cairn
        </span>
      </header>
      <main class="main">{children}</main>
    </div>
  );
}

/** Shows the frame around every page: the navigation, the caller, and a banner if the service does not answer. */
export function Shell({ children }: { children: ComponentChildren }) {
  const { page, rest, params } = address.value;
  const user = params.get('user_id');
  const places = PLACES.filter(({ access }) => may(access));
  const nav = useRef<HTMLElement>(null);
  useEffect(() => centre(nav.current, nav.current?.querySelector('[aria-current]')), [page]);
  useArrival([page, ...rest].join('/'));
  return (
    <>
      <a class="skip" href="#main" onClick={focusMain}>
        {texts.shell.skip}
      </a>
      {!isUp.value && (
        <div class="banner" role="alert">
          {texts.shell.down}
        </div>
      )}
      <div class="shell">
        <header class="side">
          <a class="brand" href={hrefOf('ask')}>
            <img src={logo} alt="" />
            Cairn
          </a>
          <nav ref={nav} class="nav" aria-label={texts.shell.pages}>
            {places.map((place) => (
              <a
                key={place.page}
                href={hrefOf(place.page, { user_id: user })}
                aria-current={isAt(place.page, page) ? 'page' : undefined}
              >
                <Icon name={place.page} />
                {texts.shell.names[place.page]}
              </a>
            ))}
          </nav>
          <Who />
        </header>
        <main class="main" id="main" tabIndex={-1}>
          {children}
        </main>
      </div>
      <Toast />
    </>
  );
}

/**
 * When another page opens, scrolls to its top and gives it the focus, so that a screen reader and the Tab key continue
 * there, and not at the link that led to it.
 */
function useArrival(path: string): void {
  const before = useRef(path);
  useEffect(() => {
    if (before.current === path) return;
    before.current = path;
    scrollTo(0, 0);
    document.getElementById('main')?.focus({ preventScroll: true });
  }, [path]);
}

function focusMain(event: Event): void {
  event.preventDefault();
  document.getElementById('main')?.focus();
}

/** For each page without an entry in the navigation, the entry that is highlighted while the page is shown. */
const WITHIN: Readonly<Record<string, IconName>> = {
  memory: 'browse',
  name: 'graph',
  document: 'documents',
  recall: 'ask',
  recalls: 'ask',
};

function isAt(place: IconName, page: string): boolean {
  return place === (WITHIN[page] ?? page);
}

function Who() {
  const { caller, is_open: isOpen, version, has_session: hasSession } = session.value!;
  const leave = () => void signOut().catch(sayRefusal);
  return (
    <div class="who">
      {caller !== null && caller.tenants.length > 1 && (
        <select
          class="input"
          aria-label={texts.shell.tenant}
          value={presentTenant()}
          onChange={({ currentTarget: { value } }) => changeParams({ tenant: value === caller.tenant ? '' : value })}
        >
          {caller.tenants.map((tenant) => (
            <option key={tenant}>{tenant}</option>
          ))}
        </select>
      )}
      <span class="optional">
        {isOpen ? texts.shell.open : texts.shell.role(caller?.role ?? '', caller?.key_id ?? '')}
      </span>
      {caller?.user_id != null && <span class="optional">{texts.shell.boundTo(caller.user_id)}</span>}
      <span class="row">
        <ThemeButton />
        {hasSession && (
          <button class="button button-small" onClick={leave}>
            {texts.shell.signOut}
          </button>
        )}
        {!hasSession && !isOpen && (
          <a class="button button-small" href={hrefOf('sign-in')}>
            {texts.signIn.action}
          </a>
        )}
      </span>
      <span class="optional">Cairn {version}</span>
    </div>
  );
}

function ThemeButton() {
  const isDark =
    theme.value === 'dark' || (theme.value === 'auto' && matchMedia('(prefers-color-scheme: dark)').matches);
  return (
    <button class="button button-small" onClick={() => chooseTheme(isDark ? 'light' : 'dark')}>
      {isDark ? texts.shell.light : texts.shell.dark}
    </button>
  );
}
