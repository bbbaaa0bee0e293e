import { count } from '../parts/format.ts';

/** Writes a number with its noun, in the plural unless it is 1. */
export const many = (number: number, one: string, more = `${one}s`) => `${count(number)} ${number === 1 ? one : more}`;
