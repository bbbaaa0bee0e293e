/** Runs a program on two services, and compares what they say step by step. */
import { isDeepStrictEqual } from 'node:util';
import type { OpenApiDocument } from '../../../src/api/openapi/document.ts';
import { operationsOf, type KnownOperation, type Step, type Tool } from './programs.ts';
import { openService } from './service.ts';

/** The statuses with which each operation was answered, by its name. */
export type Called = Map<string, Set<number>>;

/** Reads what a service can do, from its description and its list of tools. */
export async function describeService(): Promise<ReadonlyMap<string, KnownOperation>> {
  await using service = await openService({});
  const api = JSON.parse(await service.read('GET', '/openapi.json')) as OpenApiDocument;
  const asked = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
  const listed = await service.read('POST', '/mcp', asked);
  const { result } = JSON.parse(/\{.*\}/.exec(listed)![0]) as { result: { tools: readonly Tool[] } };
  return operationsOf(api, result.tools);
}

/**
 * Runs a program on a new service with a file, and on one with PostgreSQL.
 * @throws Error that tells the first reply that differs, and where
 */
export async function compare(
  program: readonly Step[],
  {
    operations,
    database,
    called,
  }: {
    readonly operations: ReadonlyMap<string, KnownOperation>;
    /** Address of the empty schema. */
    readonly database: string;
    /** Is told which operations were called. */
    readonly called?: Called | undefined;
  },
): Promise<void> {
  await using inFile = await openService({});
  await using inDatabase = await openService({ OM_DATABASE_URL: database });
  for (const step of program) {
    const [one, other] = [await inFile.run(step, operations), await inDatabase.run(step, operations)];
    const different = differenceOf(one, other);
    if (different !== undefined) {
      const { path, values } = different;
      const [ofFile, ofDatabase] = values.map((value) => JSON.stringify(value)?.slice(0, 2_000));
      throw new Error(
        `${JSON.stringify(step)} is answered differently at ${path}:\n  file       ${ofFile}\n  PostgreSQL ${ofDatabase}`,
      );
    }
    if ('call' in step) {
      const { status } = one as { status: number };
      called?.set(step.call, (called.get(step.call) ?? new Set()).add(status));
    }
  }
}

/** Finds the first place at which two values differ; the order of fields counts. */
function differenceOf(
  one: unknown,
  other: unknown,
  path = '',
): { readonly path: string; readonly values: readonly [unknown, unknown] } | undefined {
  if (isObject(one) && isObject(other)) {
    for (const key of new Set([...Object.keys(one), ...Object.keys(other)])) {
      const within = differenceOf(one[key], other[key], `${path}.${key}`);
      if (within !== undefined) return within;
    }
    const [fields, others] = [Object.keys(one), Object.keys(other)];
    return isDeepStrictEqual(fields, others) ? undefined : { path, values: [fields, others] };
  }
  return isDeepStrictEqual(one, other) ? undefined : { path, values: [one, other] };
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;
