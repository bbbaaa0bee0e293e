import { expect, test } from 'vitest';
import { findNode, orderOfPainting, type PictureNode, type Scene } from '../../src/console/pages/graph/scene.ts';

function sceneOf(nodes: readonly (Partial<PictureNode> & { readonly x: number })[]): Scene {
  return {
    nodes: nodes.map((node) => ({ href: '', label: '', colour: 'a', radius: 10, at: 0, isName: false, ...node })),
    links: [],
    places: new Float32Array(nodes.flatMap(({ x }) => [x, 0])),
    view: { x: 0, y: 0, scale: 1 },
    until: 5,
  };
}

function hrefAt(scene: Scene, x: number): string | undefined {
  return findNode(scene, orderOfPainting(scene.nodes), x, 0)?.href;
}

test('a click takes the node that is painted on top, one colour after the other', () => {
  const scene = sceneOf([
    { href: 'below', colour: 'a', x: 0 },
    { href: 'top', colour: 'b', x: 5 },
    { href: 'between', colour: 'a', x: 5 },
  ]);
  expect(hrefAt(scene, 4)).toBe('top');
  expect(hrefAt(scene, -9)).toBe('below');
  expect(hrefAt(scene, 19)).toBeUndefined();
});

test('a node that is not shown yet is not clicked', () => {
  const scene = sceneOf([
    { href: 'shown', x: 0 },
    { href: 'later', x: 0, at: 6 },
  ]);
  expect(hrefAt(scene, 0)).toBe('shown');
});
