import { extensionPoint, service } from 'busbar/sdk'

export interface Variable {
  readonly key: string
  readonly value: string
  readonly isSecret: boolean
}

export interface EnvironmentVariables {
  /**
   * Project variables, overridden by those of `variableSources`, and these by the application's, by key, values in clear. Throws when
   * one cannot be decrypted.
   */
  merged(projectId: string, applicationId: string): Promise<readonly Variable[]>
}
export const environmentVariables = service<EnvironmentVariables>('environment.variables')

/** What a plugin gives to the containers of an application, such as the connection of a database. */
export interface VariableSource {
  /** Asked for each container that is made, and each image that is built. What it rejects with fails that. */
  variablesOf(applicationId: string): Promise<readonly Variable[]>
}
export const variableSources = extensionPoint<VariableSource>('environment.sources')
