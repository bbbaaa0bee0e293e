import { z } from 'zod';
import type { RateClass, Role } from '../../engine/index.ts';
import type { TenantCall } from '../route.ts';
import { parse } from '../schemas/parse.ts';
import { time } from '../schemas/values.ts';
import type { Extra } from './extras.ts';

/** What a tool does to the world, as hints for a client that asks its user before some tools run. */
interface Hints {
  readonly readOnlyHint: boolean;
  readonly destructiveHint: boolean;
  readonly idempotentHint: boolean;
  /** Whether the tool reaches beyond the memories of this server. */
  readonly openWorldHint: boolean;
}

export const READS: Hints = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false };
export const WRITES: Hints = { ...READS, readOnlyHint: false };
export const DESTROYS: Hints = { ...WRITES, destructiveHint: true };

/** What a tool has beside its arguments while it runs. */
export interface ToolRun {
  /** Aborts at the deadline of a call, and once the client is gone. */
  readonly signal: AbortSignal;
  /** Tells the client how far the work is; for one that wants no progress it does nothing, and asks for no words. */
  readonly tell: (describe: () => string | Promise<string>) => Promise<void>;
}

interface ToolParts<Input extends z.ZodType> {
  readonly name: string;
  readonly title: string;
  /** Description for the model that chooses among the tools; each word of it is paid with each conversation. */
  readonly description: string;
  /** Role that a key needs; the tool is not listed for others. */
  readonly needs: Role;
  /** Rate limit of the key of which a call takes one; none if left out. */
  readonly limited?: RateClass;
  /** The tool is only there if this is asked for. */
  readonly extra?: Extra;
  readonly annotations: Hints;
  readonly input: Input;
  /** Does the work and returns the text for the model. An `EngineError` is told as a result with `isError`. */
  readonly run: (call: TenantCall, input: z.output<Input>, run: ToolRun) => Promise<string>;
}

/** A tool whose arguments are parsed by its own schema. */
export interface Tool extends Omit<ToolParts<z.ZodType>, 'input' | 'run'> {
  readonly inputSchema: ToolSchema;
  readonly run: (call: TenantCall, input: unknown, run: ToolRun) => Promise<string>;
}

/** Declares a tool. Its schema is translated once, since each request is served by new objects of the SDK. */
export function tool<Input extends z.ZodType>({ input, run, ...parts }: ToolParts<Input>): Tool {
  return {
    ...parts,
    inputSchema: toolSchema(input),
    run: async (call, given, during) => run(call, parse(input, given) as z.output<Input>, during),
  };
}

/** A schema as the SDK takes it (Standard Schema with JSON Schema). */
export interface ToolSchema {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: 'cairn';
    readonly validate: (value: unknown) => { readonly value: unknown };
    readonly jsonSchema: Record<'input' | 'output', () => Record<string, unknown>>;
    readonly types?: { readonly input: unknown; readonly output: unknown };
  };
}

/**
 * Shows a schema to clients as JSON Schema. It accepts everything: the tool parses its arguments itself, so that a
 * refusal is worded as everywhere in the API.
 */
export function toolSchema(schema: z.ZodType): ToolSchema {
  const shown = shortJsonSchema(schema);
  return {
    '~standard': {
      version: 1,
      vendor: 'cairn',
      validate: (value) => ({ value }),
      jsonSchema: { input: () => shown, output: () => shown },
    },
  };
}

/** Parts of a JSON Schema that a model has no use for, and that it would pay for as tokens; the server checks them. */
const UNSHOWN: ReadonlySet<string> = new Set(['$schema', 'pattern', 'maxLength', 'minLength', 'maxItems', 'minItems']);

function shortJsonSchema(schema: z.ZodType): Record<string, unknown> {
  const whole = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
  return JSON.parse(JSON.stringify(whole, (key, value: unknown) => (UNSHOWN.has(key) ? undefined : value))) as Record<
    string,
    unknown
  >;
}

/** A time as a model writes it; parsed to Unix milliseconds. */
export const isoTime = z
  .string()
  .transform((value): string | number => value)
  .pipe(time);
