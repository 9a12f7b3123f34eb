import { identity } from 'busbar/api/identity'
import { projectDirectory } from 'busbar/api/projects'
import { kernel, type StartContext } from 'busbar/sdk'
import { TokenService } from './token-service.js'

export const needs = { identity, projects: projectDirectory, operations: kernel.operations }

/** The running plugin. */
export interface Tokens {
  readonly tokens: TokenService
}

export function startTokens({ use }: StartContext<typeof needs, unknown>): Tokens {
  return { tokens: new TokenService(use) }
}
