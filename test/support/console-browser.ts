import { chromium, type Browser, type BrowserContext, type Page } from 'playwright-core';
import { afterAll, beforeAll, inject, onTestFinished, test } from 'vitest';
import axe from 'axe-core';

const browserPath = inject('browserPath');
let browser: Browser | undefined;
/** Longest time that a page may take for anything: a bound on hanging, not a measure (ms). */
const PATIENCE_MS = 120_000;

/** A test that needs a Chromium; skipped where there is none. */
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

/** Opens a page in a browser of its own, until the test has ended. */
export async function openPage(url: string): Promise<Page> {
  const context = await browser!.newContext();
  onTestFinished(() => context.close());
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  await page.goto(url);
  return page;
}

/** A page in a browser of its own, with all that it did that it must not do. */
export interface ConsolePage extends AsyncDisposable {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Requests to other hosts, and errors and refusals of the content security policy in the page's console. */
  readonly problems: readonly string[];
}

interface OpenOptions {
  readonly colorScheme?: 'light' | 'dark';
  readonly width?: number;
  /** Origins beside that of the service which the browser may go to, as an identity provider. */
  readonly also?: readonly string[];
}

/**
 * Opens a view of the console. When it is disposed of, it throws if the page asked another host for anything, or said
 * anything in the browser's console.
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

/** Shows another view, and waits until it has loaded what it shows. */
export async function show(page: Page, url: string, view: string): Promise<void> {
  await page.goto('about:blank');
  await page.goto(`${url}/console#/${view}`);
  await page.getByRole('heading', { level: 1 }).waitFor();
  await page.locator('.skeleton').first().waitFor({ state: 'detached' });
}

interface Looked {
  /** Names of the only rules that are looked at; all by default. */
  readonly rules?: readonly string[];
  /** Selector of the only part that is looked at; the whole page by default. */
  readonly within?: string;
}

/** Lists what axe finds wrong with a page for people who use it by keyboard or hear it. */
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
