import { z } from 'zod';
import type { RateClass, Role } from '../../engine/index.ts';
import type { TenantCall } from '../route.ts';
import { parse } from '../schemas/parse.ts';
import { time } from '../schemas/values.ts';
import type { Extra } from './extras.ts';

/** Effects of a tool, as hints for a client that asks its user before some tools run. */
interface Hints {
  readonly readOnlyHint: boolean;
  /**
   * Whether the tool may destroy something for good. A change that keeps what it replaces, as the history of a memory
   * does, destroys nothing.
   */
  readonly destructiveHint: boolean;
  /** Whether a second call with the same arguments has no further effect, apart from its record in the audit log. */
  readonly idempotentHint: boolean;
  /** Whether the tool uses more than the memories of this server, such as web pages. */
  readonly openWorldHint: boolean;
}

export const READS: Hints = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false };
export const WRITES: Hints = { ...READS, readOnlyHint: false, idempotentHint: false };
export const DESTROYS: Hints = { ...WRITES, destructiveHint: true };

/** What a running tool gets besides its arguments. */
export interface ToolRun {
  /** Aborts at the deadline of the call, and once the client has left. */
  readonly signal: AbortSignal;
  /**
   * Sends a progress notification with the text that `describe` makes. If the client wants none, it does nothing and
   * does not call `describe`.
   */
  readonly tell: (describe: () => string | Promise<string>) => Promise<void>;
}

interface ToolParts<Input extends z.ZodType> {
  readonly name: string;
  readonly title: string;
  /** Description for the model that chooses a tool. It is part of every conversation, and so costs tokens each time. */
  readonly description: string;
  /** Role that a key needs. The tool is not listed for keys without it. */
  readonly needs: Role;
  /** Rate limit of the key from which each call takes one token; by default none. */
  readonly limited?: RateClass;
  /** Name under which an extra tool must be asked for; if undefined, the tool is always listed. */
  readonly extra?: Extra;
  readonly annotations: Hints;
  readonly input: Input;
  /** Does the work and returns a text for the model. Whatever it throws becomes a result with `isError`. */
  readonly run: (call: TenantCall, input: z.output<Input>, run: ToolRun) => Promise<string>;
}

/** A tool that parses its arguments by its own schema. */
export interface Tool extends Omit<ToolParts<z.ZodType>, 'input' | 'run'> {
  readonly inputSchema: ToolSchema;
  readonly run: (call: TenantCall, input: unknown, run: ToolRun) => Promise<string>;
}

/** Declares a tool. Its schema is converted once here, since the SDK makes new objects for each request. */
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
 * Makes a schema that describes itself to clients as JSON Schema but accepts every value: the tool parses its arguments
 * itself, so that its errors are worded as everywhere in the API.
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

/**
 * Keywords of JSON Schema that are removed from the schemas shown to a model, since they are of no use to it and would
 * cost tokens. The server still checks the arguments against them.
 */
const UNSHOWN: ReadonlySet<string> = new Set(['$schema', 'pattern', 'maxLength', 'minLength', 'maxItems', 'minItems']);

function shortJsonSchema(schema: z.ZodType): Record<string, unknown> {
  const whole = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
  return JSON.parse(JSON.stringify(whole, (key, value: unknown) => (UNSHOWN.has(key) ? undefined : value))) as Record<
    string,
    unknown
  >;
}

/**
 * Schema of a time in the arguments of a tool: an ISO 8601 date, or a date and time with offset. It is parsed to Unix
 * ms.
 */
export const isoTime = z
  .string()
  .transform((value): string | number => value)
  .pipe(time);
