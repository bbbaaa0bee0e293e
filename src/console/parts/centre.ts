/** Scrolls a row sideways so that an item is in its middle, as far as possible. The page itself is not scrolled. */
export function centre(row: Element | null, item: Element | null | undefined): void {
  if (row === null || item == null) return;
  const [outer, inner] = [row.getBoundingClientRect(), item.getBoundingClientRect()];
  row.scrollLeft += inner.left + inner.width / 2 - outer.left - outer.width / 2;
}
