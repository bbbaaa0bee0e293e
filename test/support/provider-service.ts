import { onTestFinished } from 'vitest';
import { withStore } from './add-checker.ts';
import { startFakeProvider, type FakeProvider } from './fake-provider.ts';
import { startServiceProcess, type ServiceProcess } from './running-service.ts';
import { storedVectors } from './stored-vectors.ts';
import { tempFolder } from './temp-folder.ts';

const DIMENSIONS = 256;

export interface ProviderService {
  readonly folder: string;
  readonly service: ServiceProcess;
  readonly provider: FakeProvider;
  /**
   * Adds texts, all of which must be accepted.
   * @returns the ids of their jobs
   */
  add(texts: readonly string[]): Promise<string[]>;
}

/** Starts the service with a fake model provider that misbehaves on request, over real HTTP. */
export async function startWithProvider(settings: Readonly<Record<string, string>> = {}): Promise<ProviderService> {
  const folder = tempFolder();
  const provider = await startFakeProvider({ dimensions: DIMENSIONS });
  onTestFinished(() => provider.close());
  const service = await startServiceProcess({
    folder,
    settings: {
      OM_EMBEDDINGS: 'openai',
      OM_OPENAI_BASE_URL: provider.url,
      OM_VEC_DIM: String(DIMENSIONS),
      // On a machine that does much else a query would go on without its vector.
      OM_QUERY_EMBED_TIMEOUT_MS: '60000',
      OM_VECTOR_PRECISION: 'float32',
      ...settings,
    },
  });
  onTestFinished(async () => void (await service.end('SIGKILL')));
  return {
    folder,
    service,
    provider,
    add: (texts) =>
      Promise.all(
        texts.map(async (content) => {
          const reply = await service.request('POST', '/memory/add', { body: { content } });
          if (reply.status !== 202) throw new Error(`an add was answered ${reply.status}: ${reply.text}`);
          return reply.body.job_id;
        }),
      ),
  };
}

/**
 * Counts the stored vectors, and among them the bad ones: those whose length is not 1, or with a number that is not
 * finite.
 */
export function countBadVectors(folder: string): { vectors: number; bad: number } {
  return withStore(folder, ({ db }) => {
    const norms = storedVectors(db).map(({ embedding }) => Math.hypot(...embedding));
    // NaN is not within anything.
    return { vectors: norms.length, bad: norms.filter((norm) => !(Math.abs(norm - 1) < 1e-3)).length };
  });
}
