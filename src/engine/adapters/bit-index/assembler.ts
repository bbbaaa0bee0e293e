/**
 * A WebAssembly assembler with the instructions that the kernels (inner loops) in this folder need. Instructions are
 * lists of bytes, and a function is their concatenation. Opcodes are those of the WebAssembly specification 2.0,
 * section 5.4. Every i32 address is an offset into the single memory that a module imports.
 */

import { MAX_PAGES } from './kernels.ts';

/** Encoded instructions, as a list of bytes. */
export type Code = readonly number[];

/** A WebAssembly function that is to be assembled. */
export interface WasmFunction {
  readonly name: string;
  /** Number of parameters, all of type i32. They are the first locals. */
  readonly parameters: number;
  /**
   * Types of the local variables other than parameters, each with their number; their indexes follow those of the
   * parameters.
   */
  readonly locals: readonly (readonly [count: number, type: ValueType])[];
  /** Type of the result; left out for none. */
  readonly returns?: 'i32';
  /** Instructions of the function, without the final `end`. */
  readonly body: readonly Code[];
}

type ValueType = keyof typeof TYPES;

const TYPES = { i32: 0x7f, i64: 0x7e, v128: 0x7b } as const;
const NO_RESULT = 0x40;

/**
 * Returns the binary of a module that exports the functions by name. It imports the memory `env.memory`, which threads
 * share, and the number `env.base`.
 */
export function assemble(functions: readonly WasmFunction[]): Uint8Array<ArrayBuffer> {
  const types = functions.map(({ parameters, returns }) => [
    0x60,
    ...unsigned(parameters),
    ...new Array<number>(parameters).fill(TYPES.i32),
    ...(returns === undefined ? [0] : [1, TYPES[returns]]),
  ]);
  const bodies = functions.map(({ locals, body }) => {
    const code = [
      ...unsigned(locals.length),
      ...locals.flatMap(([count, type]) => [...unsigned(count), TYPES[type]]),
      ...body.flat(),
      END,
    ];
    return [...unsigned(code.length), ...code];
  });
  return Uint8Array.from([
    0x00,
    0x61,
    0x73,
    0x6d,
    0x01,
    0x00,
    0x00,
    0x00,
    ...section(1, types),
    ...section(2, [
      [...text('env'), ...text('memory'), 0x02, 0x03, 0x01, ...unsigned(MAX_PAGES)],
      [...text('env'), ...text('base'), 0x03, TYPES.i32, 0x00],
    ]),
    ...section(
      3,
      functions.map((_, index) => unsigned(index)),
    ),
    ...section(
      7,
      functions.map(({ name }, index) => [...text(name), 0x00, ...unsigned(index)]),
    ),
    ...section(10, bodies),
  ]);
}

const END = 0x0b;

function section(id: number, entries: readonly Code[]): Code {
  const content = [...unsigned(entries.length), ...entries.flat()];
  return [id, ...unsigned(content.length), ...content];
}

function text(value: string): Code {
  const bytes = [...Buffer.from(value)];
  return [...unsigned(bytes.length), ...bytes];
}

/** Encodes a whole number of 0 or more as unsigned LEB128. */
function unsigned(value: number): Code {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) | 0x80);
  return [...bytes, rest];
}

/** Encodes a 32-bit number as signed LEB128. */
function signed(value: number): Code {
  const bytes: number[] = [];
  let rest = value;
  for (; rest < -0x40 || rest >= 0x40; rest >>= 7) bytes.push((rest & 0x7f) | 0x80);
  return [...bytes, rest & 0x7f];
}

/** Instructions that read or write a function's local variable, by its index; parameters come first. */
export const local = {
  get: (index: number): Code => [0x20, ...unsigned(index)],
  set: (index: number): Code => [0x21, ...unsigned(index)],
  /** Sets the local and leaves the value on the stack. */
  tee: (index: number): Code => [0x22, ...unsigned(index)],
};

/** Instruction that pushes the imported number `env.base`. */
export const base: Code = [0x23, 0];

/**
 * Returns an encoder of a load or store instruction, which takes its address from the stack and adds `offset`. The
 * instruction's alignment 0 allows any address.
 */
const memory =
  (opcode: number) =>
  (offset = 0): Code => [opcode, 0, ...unsigned(offset)];

/** Instructions on i32 values. Comparison and right shift are unsigned. */
export const i32 = {
  const: (value: number): Code => [0x41, ...signed(value)],
  load: memory(0x28),
  store: memory(0x36),
  equal: [0x46],
  lessThan: [0x49],
  add: [0x6a],
  subtract: [0x6b],
  multiply: [0x6c],
  and: [0x71],
  or: [0x72],
  shiftLeft: [0x74],
  shiftRight: [0x76],
  fromI64: [0xa7],
  store16: memory(0x3b),
  /** Takes three values from the stack and leaves the first if the third is not 0, else the second. */
  select: [0x1b],
} as const;

/** Instructions on i64 values. The right shift is unsigned. `const` takes a signed 32-bit number. */
export const i64 = {
  const: (value: number): Code => [0x42, ...signed(value)],
  load: memory(0x29),
  store: memory(0x37),
  add: [0x7c],
  subtract: [0x7d],
  and: [0x83],
  xor: [0x85],
  notEqual: [0x52],
  shiftRight: [0x88],
  popcount: [0x7b],
  /** Takes an i64 and pushes the number of clear bits below its lowest set bit. */
  trailingZeros: [0x7a],
} as const;

const vector = (opcode: number, ...rest: readonly number[]): Code => [0xfd, ...unsigned(opcode), ...rest];

/** Instructions on v128 values (128-bit vectors). Loads and stores allow any address. */
export const v128 = {
  load: (offset = 0): Code => vector(0x00, 0, ...unsigned(offset)),
  store: (offset = 0): Code => vector(0x0b, 0, ...unsigned(offset)),
  /**
   * Takes an address and a vector, and pushes the vector with byte `lane` (0..15) replaced by the byte at the address.
   */
  loadByte: (lane: number): Code => vector(0x54, 0, 0, lane),
  /** Takes a vector and leaves its lower (0) or higher (1) 64 bits as an i64. */
  half: (lane: 0 | 1): Code => vector(0x1d, lane),
  not: vector(0x4d),
  and: vector(0x4e),
  or: vector(0x50),
  xor: vector(0x51),
  /** Takes a vector and pushes 1 if any bit of it is set, else 0. */
  any: vector(0x53),
  /**
   * Takes a vector and pushes the highest bits of its 16 bytes as a 16-bit number; bit n is the highest bit of byte n.
   */
  highestOfBytes: vector(0x64),
  /** Takes a vector and a number, and shifts each of the vector's 16 bytes left by that many bits. */
  shiftBytesLeft: vector(0x6b),
} as const;

/** Structured control instructions. */
export const control = {
  /**
   * Runs `body` at least once, and again as long as it leaves a number other than 0 on the stack. That number is
   * removed.
   */
  repeatWhile: (...body: readonly Code[]): Code => [0x03, NO_RESULT, ...body.flat(), 0x0d, 0, END],
  /** Takes a number from the stack and runs `body` if it is not 0. */
  when: (...body: readonly Code[]): Code => [0x04, NO_RESULT, ...body.flat(), END],
};
