/**
 * Makes constants of the engine's modules settable in this process, so that a measurement can try other values without
 * a switch in the engine. Modules that are imported after the call of `makeSettable` are changed while they are loaded.
 */
import { registerHooks } from 'node:module';

/** A constant of a module of the engine. */
export interface ConstantName {
  /** The module, from `src/engine`, without its ending: `retrieve/raw-score`. */
  readonly file: string;
  /** The name of the constant, with the way to the number inside of an object: `WEIGHTS.speaker.weight`. */
  readonly name: string;
}

interface Access {
  readonly get: () => unknown;
  readonly set: (value: unknown) => void;
}

const SETTABLE = Symbol.for('settable constants');
const accesses: Map<string, Access> = ((globalThis as Record<symbol, unknown>)[SETTABLE] = new Map<string, Access>());

/** Makes the given constants settable in the modules that are imported from now on. */
export function makeSettable(constants: readonly ConstantName[]): void {
  registerHooks({
    load(url, context, nextLoad) {
      const loaded = nextLoad(url, context);
      const file = /\/src\/engine\/(.+)\.ts$/.exec(url)?.[1];
      const names = new Set(constants.filter((one) => one.file === file).map(({ name }) => rootOf(name)));
      if (names.size === 0 || loaded.source == null) return loaded;
      let source = typeof loaded.source === 'string' ? loaded.source : Buffer.from(loaded.source as Buffer).toString();
      for (const name of names) {
        source = source.replace(new RegExp(`^((?:export )?)const (?=${name}\\b)`, 'm'), '$1let ');
        source +=
          `\nglobalThis[Symbol.for('settable constants')].set(${JSON.stringify(`${file} ${name}`)}, ` +
          `{ get: () => ${name}, set: (value) => { ${name} = value; } });\n`;
      }
      return { ...loaded, source };
    },
  });
}

/** Returns the value of a constant. Throws if its module is not loaded or has no such number. */
export function valueOf(constant: ConstantName): number {
  const [, ...path] = constant.name.split('.');
  const value = path.reduce<unknown>((part, key) => (part as Record<string, unknown>)[key], accessOf(constant).get());
  if (typeof value !== 'number') throw new Error(`${constant.file} has no number ${constant.name}`);
  return value;
}

/** Sets a constant, until it is set again. */
export function setValue(constant: ConstantName, value: number): void {
  const access = accessOf(constant);
  const [, ...path] = constant.name.split('.');
  access.set(path.length === 0 ? value : withValue(access.get() as Nested, path, value));
}

interface Nested {
  readonly [key: string]: number | Nested;
}

/** A copy of an object with another number at the end of a path. */
function withValue(object: Nested, [key, ...rest]: readonly string[], value: number): Nested {
  return { ...object, [key!]: rest.length === 0 ? value : withValue(object[key!] as Nested, rest, value) };
}

function accessOf({ file, name }: ConstantName): Access {
  const access = accesses.get(`${file} ${rootOf(name)}`);
  if (access === undefined) throw new Error(`${name} of ${file} is not settable`);
  return access;
}

function rootOf(name: string): string {
  return name.split('.', 1)[0]!;
}
