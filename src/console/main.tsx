import { signal } from '@preact/signals';
import { render, type ComponentType } from 'preact';
import { address, go, hrefOf } from './address.ts';
import './console.css';
import { Ask } from './pages/ask/ask.tsx';
import { SignIn } from './pages/sign-in.tsx';
import { Empty, Failed, Waiting } from './parts/basics.tsx';
import { lazily } from './parts/lazily.tsx';
import { type Refusal, returns } from './client.ts';
import { loadSession, session, takeRememberedView } from './session.ts';
import { applyTheme, Frame, Shell } from './shell.tsx';
import { texts } from './texts.ts';

/** Components of the pages by the first segment of their address. All but the first are loaded when they are opened. */
const PAGES: Readonly<Record<string, ComponentType>> = {
  ask: Ask,
  memory: page(async () => (await import('./pages/memory/memory.tsx')).MemoryPage),
  browse: page(async () => (await import('./pages/browse/browse.tsx')).Browse),
  documents: page(async () => (await import('./pages/documents/documents.tsx')).Documents),
  document: page(async () => (await import('./pages/documents/document.tsx')).DocumentPage),
  recalls: page(async () => (await import('./pages/recalls/recalls.tsx')).Recalls),
  recall: page(async () => (await import('./pages/recalls/recall.tsx')).RecallPage),
  decay: page(async () => (await import('./pages/decay/decay.tsx')).Decay),
  evals: page(async () => (await import('./pages/evals/evals.tsx')).Evals),
  standing: page(async () => (await import('./pages/standing/standing.tsx')).Standing),
  graph: page(async () => (await import('./pages/graph/graph.tsx')).Graph),
  admin: page(async () => (await import('./pages/admin/admin.tsx')).Admin),
  name: page(async () => (await import('./pages/graph/name.tsx')).NamePage),
  work: page(async () => (await import('./pages/work/work.tsx')).Work),
};

/**
 * Makes the component of a page whose files are loaded when it is opened. If loading fails, it is `Outdated`: the
 * service does not answer, or has other files after an upgrade.
 */
function page(load: () => Promise<ComponentType>): ComponentType {
  return lazily(() => load().catch(() => Outdated));
}

function Outdated() {
  return (
    <Empty title={texts.outdated}>
      <p>{texts.outdatedAbout}</p>
      <button class="button" onClick={() => location.reload()}>
        {texts.reload}
      </button>
    </Empty>
  );
}

const failure = signal<Refusal | undefined>(undefined);

function load(): void {
  failure.value = undefined;
  loadSession().catch((error: unknown) => (failure.value = error as Refusal));
}

function Console() {
  const { page } = address.value;
  if (session.value === undefined) return <Start />;
  if (session.value.caller === null || page === 'sign-in') return <SignIn />;
  const Page = PAGES[page];
  return <Shell>{Page === undefined ? <NoPage /> : <Page />}</Shell>;
}

function Start() {
  return <Frame>{failure.value === undefined ? <Waiting /> : <Failed error={failure.value} retry={load} />}</Frame>;
}

function NoPage() {
  return (
    <Empty title={texts.noPage}>
      <a class="button" href={hrefOf('ask')}>
        {texts.shell.names.ask}
      </a>
    </Empty>
  );
}

applyTheme();
if (address.value.page === '') go(takeRememberedView() ?? hrefOf('ask'), { replace: true });
load();
// The session may have ended while the service was away.
returns.subscribe((times) => times > 0 && load());
// Titles of tabs follow the view; the frame moves the focus.
const titles: Readonly<Record<string, string>> = { ...texts.shell.names, ...texts.shell.further };
address.subscribe(({ page }) => (document.title = `${titles[page] ?? texts.shell.console} · Cairn`));
const root = document.getElementById('console')!;
root.replaceChildren();
render(<Console />, root);
