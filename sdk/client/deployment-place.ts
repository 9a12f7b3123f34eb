export const deploymentPath =
  '/api/projects/{projectId}/applications/{applicationId}/deployments/{deploymentId}'

/** Where a deployment is in the paths of the API. */
export interface DeploymentPlace {
  readonly id: string
  readonly application_id: string
  readonly project_id: string
}

export const paramsOf = ({ id, application_id, project_id }: DeploymentPlace) => ({
  projectId: project_id,
  applicationId: application_id,
  deploymentId: id
})
