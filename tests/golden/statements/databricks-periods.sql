WITH `discreet_rows` AS (
  SELECT
    *
  FROM (
    SELECT
      `t5`.`who`,
      `t5`.`item`,
      `t3`.`number` AS `grp`
    FROM (
      SELECT
        CAST(`t0`.`customer` AS BINARY) AS `who`,
        `t0`.`number` AS `item`,
        COALESCE(
          (
            CAST(NULL AS BIGINT) + 719163
          ) * 172800,
          (
            (
              CASE
                WHEN TYPEOF(`t0`.`moment`) = 'timestamp'
                THEN UNIX_SECONDS(TO_TIMESTAMP_LTZ(`t0`.`moment`))
                ELSE (
                  DATEDIFF(DAY, CAST('1970-01-01' AS DATE), CAST(`t0`.`moment` AS DATE)) * 86400
                ) + (
                  (
                    HOUR(`t0`.`moment`) * 3600
                  ) + (
                    MINUTE(`t0`.`moment`) * 60
                  ) + SECOND(`t0`.`moment`)
                )
              END + 62135683200
            ) * 2
          ) + 1
        ) AS `key0`
      FROM `mart`.`sales` AS `t0`
    ) AS `t5`
    INNER JOIN (
      SELECT
        CAST(`key` AS BIGINT) AS `key`,
        CAST(`low` AS BIGINT) AS `low`,
        CAST(`high` AS BIGINT) AS `high`,
        CAST(`number` AS BIGINT) AS `number`
      FROM VALUES
        (739698, 127819814400, 127819814400, 0),
        (739699, 127819987200, 127819987200, 0),
        (739700, 127820160000, 127820160000, 0),
        (739701, 127820332800, 127820332800, 0),
        (739702, 127820505600, 127820505600, 0),
        (739703, 127820678400, 127820678400, 0),
        (739704, 127820851200, 127820851200, 0),
        (739705, 127821024000, 127821024000, 1),
        (739706, 127821196800, 127821196800, 1),
        (739707, 127821369600, 127821369600, 1),
        (739708, 127821542400, 127821542400, 1),
        (739709, 127821715200, 127821715200, 1),
        (739710, 127821888000, 127821888000, 1),
        (739711, 127822060800, 127822060800, 1),
        (739697, 127819807201, 127819814399, 0),
        (739698, 127819814401, 127819987199, 0),
        (739699, 127819987201, 127820159999, 0),
        (739700, 127820160001, 127820332799, 0),
        (739701, 127820332801, 127820505599, 0),
        (739702, 127820505601, 127820678399, 0),
        (739703, 127820678401, 127820851199, 0),
        (739704, 127820851201, 127820858399, 0),
        (739704, 127820858401, 127821009599, 0),
        (739704, 127821009601, 127821023999, 1),
        (739705, 127821024001, 127821196799, 1),
        (739706, 127821196801, 127821369599, 1),
        (739707, 127821369601, 127821542399, 1),
        (739708, 127821542401, 127821715199, 1),
        (739709, 127821715201, 127821887999, 1),
        (739710, 127821888001, 127822060799, 1),
        (739711, 127822060801, 127822219199, 1) AS listed(`key`, `low`, `high`, `number`)
    ) AS `t3`
      ON CAST(FLOOR((
        `t5`.`key0`
      ) / (
        172800
      )) AS BIGINT) = `t3`.`key`
      AND `t5`.`key0` >= `t3`.`low`
      AND `t5`.`key0` <= `t3`.`high`
  ) AS `t8`
  WHERE
    `t8`.`who` IS NOT NULL
), `discreet_group_rows` AS (
  SELECT
    *
  FROM (
    SELECT
      `t7`.`who`,
      `t3`.`number` AS `grp`
    FROM (
      SELECT
        CAST(`t2`.`customer` AS BINARY) AS `who`,
        COALESCE(
          (
            CAST(NULL AS BIGINT) + 719163
          ) * 172800,
          (
            (
              CASE
                WHEN TYPEOF(`t2`.`moment`) = 'timestamp'
                THEN UNIX_SECONDS(TO_TIMESTAMP_LTZ(`t2`.`moment`))
                ELSE (
                  DATEDIFF(DAY, CAST('1970-01-01' AS DATE), CAST(`t2`.`moment` AS DATE)) * 86400
                ) + (
                  (
                    HOUR(`t2`.`moment`) * 3600
                  ) + (
                    MINUTE(`t2`.`moment`) * 60
                  ) + SECOND(`t2`.`moment`)
                )
              END + 62135683200
            ) * 2
          ) + 1
        ) AS `key0`
      FROM `mart`.`sales` AS `t2`
    ) AS `t7`
    INNER JOIN (
      SELECT
        CAST(`key` AS BIGINT) AS `key`,
        CAST(`low` AS BIGINT) AS `low`,
        CAST(`high` AS BIGINT) AS `high`,
        CAST(`number` AS BIGINT) AS `number`
      FROM VALUES
        (739698, 127819814400, 127819814400, 0),
        (739699, 127819987200, 127819987200, 0),
        (739700, 127820160000, 127820160000, 0),
        (739701, 127820332800, 127820332800, 0),
        (739702, 127820505600, 127820505600, 0),
        (739703, 127820678400, 127820678400, 0),
        (739704, 127820851200, 127820851200, 0),
        (739705, 127821024000, 127821024000, 1),
        (739706, 127821196800, 127821196800, 1),
        (739707, 127821369600, 127821369600, 1),
        (739708, 127821542400, 127821542400, 1),
        (739709, 127821715200, 127821715200, 1),
        (739710, 127821888000, 127821888000, 1),
        (739711, 127822060800, 127822060800, 1),
        (739697, 127819807201, 127819814399, 0),
        (739698, 127819814401, 127819987199, 0),
        (739699, 127819987201, 127820159999, 0),
        (739700, 127820160001, 127820332799, 0),
        (739701, 127820332801, 127820505599, 0),
        (739702, 127820505601, 127820678399, 0),
        (739703, 127820678401, 127820851199, 0),
        (739704, 127820851201, 127820858399, 0),
        (739704, 127820858401, 127821009599, 0),
        (739704, 127821009601, 127821023999, 1),
        (739705, 127821024001, 127821196799, 1),
        (739706, 127821196801, 127821369599, 1),
        (739707, 127821369601, 127821542399, 1),
        (739708, 127821542401, 127821715199, 1),
        (739709, 127821715201, 127821887999, 1),
        (739710, 127821888001, 127822060799, 1),
        (739711, 127822060801, 127822219199, 1) AS listed(`key`, `low`, `high`, `number`)
    ) AS `t3`
      ON CAST(FLOOR((
        `t7`.`key0`
      ) / (
        172800
      )) AS BIGINT) = `t3`.`key`
      AND `t7`.`key0` >= `t3`.`low`
      AND `t7`.`key0` <= `t3`.`high`
  ) AS `t9`
  WHERE
    `t9`.`who` IS NOT NULL
), `discreet_groups` AS (
  SELECT
    `t17`.`who`,
    3 - (
      `t17`.`place` & 3
    ) AS `grp`
  FROM (
    SELECT
      `t16`.`who`,
      MAX(`t16`.`place`) AS `place`
    FROM (
      SELECT
        `t15`.`who`,
        (
          IF(`t15`.`number` IS NULL, `t15`.`number`, LEAST(1152921504606846976, `t15`.`number`)) * 4
        ) + (
          3 - `t15`.`grp`
        ) AS `place`
      FROM (
        SELECT
          `t14`.`who`,
          `t14`.`grp`,
          COUNT(*) AS `number`
        FROM `discreet_group_rows` AS `t14`
        GROUP BY
          1,
          2
      ) AS `t15`
    ) AS `t16`
    GROUP BY
      1
  ) AS `t17`
)
SELECT
  *
FROM (
  SELECT
    `t21`.`grp`,
    `t21`.`item`,
    COUNT(DISTINCT `t21`.`who`) AS `score`
  FROM (
    SELECT
      `t13`.`who`,
      `t13`.`item`,
      `t13`.`grp`
    FROM `discreet_rows` AS `t13`
    INNER JOIN `discreet_groups` AS `t20`
      ON `t13`.`who` = `t20`.`who` AND `t13`.`grp` = `t20`.`grp`
  ) AS `t21`
  GROUP BY
    1,
    2
) AS `t22`
WHERE
  `t22`.`item` BETWEEN 0 AND 99
