import { createHash } from 'node:crypto'

/**
 * By what the engine knows each layer: its digest together with those below it. It takes a layer that it holds for one
 * that a registry names only where all below are the same.
 */
export function chainIds(layers: readonly string[]): string[] {
  const ids: string[] = []
  for (const layer of layers) {
    const below = ids.at(-1)
    ids.push(below === undefined ? layer : sha256(`${below} ${layer}`))
  }
  return ids
}

const sha256 = (text: string): string => `sha256:${createHash('sha256').update(text).digest('hex')}`
