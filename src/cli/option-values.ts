/** Parsers of the values of options. Each throws commander's error, which shows the help of the command. */
import { InvalidArgumentError } from 'commander';

/** Makes the parser of an option that is an integer from `min` to `max`, both included. */
export function integer(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    throw new InvalidArgumentError(`expected a number in ${min}..${max}`);
  };
}

/** Parses an option that is a number from 0 to 1. */
export function fraction(text: string): number {
  const value = /^\d*\.?\d+$/.test(text) ? Number(text) : Number.NaN;
  if (value >= 0 && value <= 1) return value;
  throw new InvalidArgumentError('expected a number in 0..1');
}
