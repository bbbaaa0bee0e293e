import { chromium, type Browser, type BrowserContext, type Page } from 'playwright-core';
import { afterAll, beforeAll, inject, onTestFinished, test } from 'vitest';
import axe from 'axe-core';

const browserPath = inject('browserPath');
let browser: Browser | undefined;
/** Longest time that a page may take for anything (ms). It only bounds a test that hangs; it is no measurement. */
const PATIENCE_MS = 120_000;

/** A test that needs a Chromium. It is skipped if none is installed. */
export const browserTest: typeof test.skip = test.skipIf(browserPath === null);

/** Starts a Chromium for the tests of a file, and ends it after them. */
export function useBrowser(): void {
  beforeAll(async () => {
    if (browserPath === null) return;
    browser = await chromium.launch({
      executablePath: browserPath,
      args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-background-networking'],
    });
  });
  afterAll(() => browser?.close());
}

/** Opens a page in a browser context of its own, which is closed when the test has ended. */
export async function openPage(url: string): Promise<Page> {
  const context = await browser!.newContext();
  onTestFinished(() => context.close());
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  await page.goto(url);
  return page;
}

/** A page in a browser context of its own, with a record of everything that the page must not do. */
export interface ConsolePage extends AsyncDisposable {
  readonly page: Page;
  readonly context: BrowserContext;
  /**
   * What the page did although it must not: requests to other hosts, and errors and violations of the content security
   * policy in the browser's console.
   */
  readonly problems: readonly string[];
}

interface OpenOptions {
  readonly colorScheme?: 'light' | 'dark';
  readonly width?: number;
  /** Further origins that the browser may request, such as that of an identity provider. */
  readonly also?: readonly string[];
}

/**
 * Opens a view of the console. When it is disposed of, it throws if the page sent a request to another host, or if the
 * browser's console shows an error.
 * @param view address of the view after the `#/`
 */
export async function openConsole(url: string, view = '', options: OpenOptions = {}): Promise<ConsolePage> {
  const { colorScheme = 'light', width = 1280, also = [] } = options;
  const context = await browser!.newContext({ colorScheme, viewport: { width, height: 900 } });
  const problems: string[] = [];
  await context.route('**/*', (route) => {
    const asked = route.request().url();
    if ([new URL(url).origin, ...also].includes(new URL(asked).origin)) return route.continue();
    problems.push(`asked ${asked}`);
    return route.abort();
  });
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  page.on('pageerror', (error) => problems.push(`threw ${error.stack ?? error.message}`));
  page.on('console', (message) => {
    // A refused request is reported by the browser itself; what the page makes of it is for the test to say.
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
      problems.push(message.text());
  });
  await page.goto(`${url}/console#/${view}`);
  return {
    page,
    context,
    problems,
    async [Symbol.asyncDispose]() {
      await context.close();
      if (problems.length > 0) throw new Error(problems.join('\n'));
    },
  };
}

/** Signs in with a key. */
export async function signIn(page: Page, key: string): Promise<void> {
  await page.getByLabel('Key', { exact: true }).fill(key);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

/** Shows another view, and waits until its data have loaded. */
export async function show(page: Page, url: string, view: string): Promise<void> {
  await page.goto('about:blank');
  await page.goto(`${url}/console#/${view}`);
  await page.getByRole('heading', { level: 1 }).waitFor();
  await page.locator('.skeleton').first().waitFor({ state: 'detached' });
}

interface Looked {
  /** Names of the axe rules that are checked; by default all of them. */
  readonly rules?: readonly string[];
  /** Selector of the part of the page that is checked; by default the whole page. */
  readonly within?: string;
}

/** Lists the accessibility problems that axe finds in a page, for people who use a keyboard or a screen reader. */
export async function violationsOf(page: Page, { rules, within }: Looked = {}): Promise<string[]> {
  // The policy of the page allows no script of others, so axe comes in by the protocol of the browser. A page that was
  // looked at before has it.
  if (!(await page.evaluate('"axe" in globalThis'))) await page.evaluate(axe.source);
  const results = await page.evaluate(
    ([only, part]) =>
      (globalThis as unknown as { axe: typeof axe }).axe.run(part ?? 'html', {
        resultTypes: ['violations'],
        ...(only === null ? {} : { runOnly: only }),
      }),
    [rules === undefined ? null : [...rules], within ?? null] as const,
  );
  return results.violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary}`),
  );
}
