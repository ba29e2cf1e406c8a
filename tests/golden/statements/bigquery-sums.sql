SELECT
  *
FROM (
  SELECT
    `t4`.`item`,
    CAST(SUM(`t4`.`total`) AS INT64) AS `score`
  FROM (
    SELECT
      `t3`.`who`,
      `t3`.`item`,
      IF(
        IF(`t3`.`total` IS NULL, `t3`.`total`, LEAST(5000, `t3`.`total`)) IS NULL,
        IF(`t3`.`total` IS NULL, `t3`.`total`, LEAST(5000, `t3`.`total`)),
        GREATEST(-500, IF(`t3`.`total` IS NULL, `t3`.`total`, LEAST(5000, `t3`.`total`)))
      ) AS `total`
    FROM (
      SELECT
        `t2`.`who`,
        `t2`.`item`,
        SUM(`t2`.`steps`) AS `total`
      FROM (
        SELECT
          `t1`.`who`,
          `t1`.`item`,
          CAST(`t1`.`steps` AS BIGNUMERIC) AS `steps`
        FROM (
          SELECT
            CAST(`t0`.`customer` AS BYTES) AS `who`,
            `t0`.`number` AS `item`,
            CASE
              WHEN ABS(IF(IS_NAN(CAST(`t0`.`price` AS FLOAT64)), NULL, CAST(`t0`.`price` AS FLOAT64))) < 0.0025
              THEN 0
              ELSE CAST(FLOOR(
                ieee_divide(
                  IF(
                    IF(
                      IF(IS_NAN(CAST(`t0`.`price` AS FLOAT64)), NULL, CAST(`t0`.`price` AS FLOAT64)) IS NULL,
                      IF(IS_NAN(CAST(`t0`.`price` AS FLOAT64)), NULL, CAST(`t0`.`price` AS FLOAT64)),
                      LEAST(
                        10000000.0,
                        IF(IS_NAN(CAST(`t0`.`price` AS FLOAT64)), NULL, CAST(`t0`.`price` AS FLOAT64))
                      )
                    ) IS NULL,
                    IF(
                      IF(IS_NAN(CAST(`t0`.`price` AS FLOAT64)), NULL, CAST(`t0`.`price` AS FLOAT64)) IS NULL,
                      IF(IS_NAN(CAST(`t0`.`price` AS FLOAT64)), NULL, CAST(`t0`.`price` AS FLOAT64)),
                      LEAST(
                        10000000.0,
                        IF(IS_NAN(CAST(`t0`.`price` AS FLOAT64)), NULL, CAST(`t0`.`price` AS FLOAT64))
                      )
                    ),
                    GREATEST(
                      -10000000.0,
                      IF(
                        IF(IS_NAN(CAST(`t0`.`price` AS FLOAT64)), NULL, CAST(`t0`.`price` AS FLOAT64)) IS NULL,
                        IF(IS_NAN(CAST(`t0`.`price` AS FLOAT64)), NULL, CAST(`t0`.`price` AS FLOAT64)),
                        LEAST(
                          10000000.0,
                          IF(IS_NAN(CAST(`t0`.`price` AS FLOAT64)), NULL, CAST(`t0`.`price` AS FLOAT64))
                        )
                      )
                    )
                  ),
                  0.01
                ) + 0.5
              ) AS INT64)
            END AS `steps`
          FROM `mart`.`sales` AS `t0`
          WHERE
            CAST(`t0`.`customer` AS BYTES) IS NOT NULL AND `t0`.`number` IS NOT NULL
        ) AS `t1`
        WHERE
          `t1`.`steps` IS NOT NULL
      ) AS `t2`
      GROUP BY
        1,
        2
    ) AS `t3`
  ) AS `t4`
  GROUP BY
    1
) AS `t5`
WHERE
  `t5`.`item` BETWEEN 0 AND 99
